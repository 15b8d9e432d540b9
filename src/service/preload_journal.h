#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "platform/disk.h"
#include "service/preload.h"

namespace millrace {

// One preload as a file keeps it (docs/formats/preloads.md). What changes by the second is not
// kept: how much is done shows in the cache.
std::string encode_preload(const PreloadInfo& preload);
// kCorruption, or kUnsupported for a later format. `name` is the file's, for messages.
Result<PreloadInfo> decode_preload(std::string_view text, const std::string& name);

// The preloads of a gateway, one small file each, so that they go on after a restart. Blocks. The
// disk outlives it. One call at a time.
class PreloadJournal {
 public:
  // Makes the directory when it is absent.
  static Result<PreloadJournal> open(Disk& disk, std::string directory);

  // Durable on success.
  Status save(const PreloadInfo& preload);
  Status remove(const PreloadId& id);
  // In the order of their creation. Damaged ones are reported and removed.
  Result<std::vector<PreloadInfo>> load();

 private:
  PreloadJournal(Disk& disk, std::string directory)
      : disk_(&disk), directory_(std::move(directory)) {}
  std::string path_of(std::string_view name) const;

  Disk* disk_;
  std::string directory_;
};

}  // namespace millrace
