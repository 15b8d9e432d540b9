#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "app/settings.h"
#include "base/bytes.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/publisher.h"
#include "dataset/version_ref.h"
#include "platform/posix_disk.h"

namespace millrace {

// Gathers the files of a version in a directory of this machine, and publishes them.
//
// 1. "samples" below the directory has whole files only: each is written in "partial" first, and
//    gets its name by a link, which fails where there is one. So any number of processes may write
//    to a directory that was named for it at the same time, and be killed.
// 2. The directory that a version has by default is one writer's alone, by a lock that goes with
//    the process, and empty when that begins: what a killed one left is never published.
// 3. Nothing is published before commit().
//
// Needs one thread at a time. Blocks.
class VersionWriter {
 public:
  struct Options {
    VersionRef ref;
    LoadedSettings settings;
    std::string staging;
    bool is_default = false;  // The directory was not named: nobody else may use it.
    std::string notes;
  };
  struct Field {
    std::string_view name;
    ByteView data;
  };
  static Result<Options> parse(std::string_view json);
  // kConflict, saying who that is, when another writer has the directory of the version.
  static Result<std::unique_ptr<VersionWriter>> open(Options options);

  // kInvalidArgument for a key or name that cannot be a path; kConflict when the file is there.
  Status write(std::string_view key, std::span<const Field> fields);
  // The staging directory is gone afterwards. It stays after a failure, which says how it can be
  // published.
  Result<PublishReport> commit(const RequestContext& context);
  Status abort();

 private:
  explicit VersionWriter(Options options);
  Status take_default_staging();
  Status write_file(const std::string& path, ByteView data);
  Result<PublishReport> publish_samples(const RequestContext& context) const;
  // The command that does what commit() could not.
  std::string publish_command() const;

  const Options options_;
  const std::string samples_;
  const std::string partial_;
  const std::string token_;  // Tells the partial files of this writer from others'.
  PosixDisk disk_;
  std::unique_ptr<DiskLock> lock_;  // Of a default directory.
};

}  // namespace millrace
