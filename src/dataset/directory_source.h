#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/clock.h"
#include "dataset/source_tree.h"
#include "platform/file.h"

namespace millrace {

struct DirectorySourceOptions {
  std::size_t threads = 8;
  // How many directories may wait for a thread; beyond that a thread walks into them itself.
  std::size_t waiting_directories_max = 4096;
};

// A local directory as source.
//
// No symbolic link below the root is followed, in scans and on opening: a link is an entry. Mounts
// of other file systems are walked into. Sockets, FIFOs and devices are problems, as are names that
// vanish during the scan and directories that cannot be read. Names may be any bytes.
class DirectorySource final : public SourceTree {
 public:
  // `path` may itself be a symbolic link. kNotFound and the like when it is no directory.
  static Result<std::unique_ptr<DirectorySource>> open_root(const std::string& path,
                                                            DirectorySourceOptions options = {},
                                                            Clock& clock = system_clock());

  Status scan(const RequestContext& context, SourceSink& sink) override;
  Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                           const SourceEntry& entry) override;
  std::string describe() const override { return root_.path(); }

 private:
  DirectorySource(File root, DirectorySourceOptions options, Clock& clock)
      : root_(std::move(root)), options_(options), clock_(clock) {}

  const File root_;
  const DirectorySourceOptions options_;
  Clock& clock_;
};

}  // namespace millrace
