#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/manifest_cursor.h"
#include "dataset/version_reader.h"

namespace millrace {

// A file or symlink of a version with its path.
struct VersionItem {
  ManifestEntry entry;
  std::string path;
};

// Deals a version out to several threads, in batches of neighbours, because neighbours share packs.
// Directories are left out. The manifest outlives it. Safe from any thread.
class VersionBatches {
 public:
  // A batch ends with the file that takes it past the first or reaches the second.
  static constexpr std::uint64_t kBatchBytes = 4 * kMiB;
  static constexpr std::size_t kBatchItemsMax = 1024;

  // Says which of the items are wanted. Called for all of them, in order, one at a time.
  using Choose = std::function<bool(const ManifestEntry& entry)>;

  explicit VersionBatches(const Manifest& manifest, Choose choose = nullptr)
      : cursor_(manifest), choose_(std::move(choose)) {}

  // Empty at the end.
  Result<std::vector<VersionItem>> next() MR_EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  ManifestCursor cursor_ MR_GUARDED_BY(mutex_);
  const Choose choose_;
};

// Handles all batches on `parallel` threads, each with a window of its own; the first failure ends
// it and is the answer.
using HandleVersionItem = std::function<Status(const RequestContext& context, VersionWindow& window,
                                               const VersionItem& item)>;
Status for_each_version_item(const RequestContext& context, const VersionReader& reader,
                             std::size_t parallel, VersionBatches& batches,
                             const HandleVersionItem& handle);

// Gives the content of a file piece by piece. A piece is valid until `take` returns.
Status read_version_file(const RequestContext& context, VersionWindow& window,
                         const ManifestEntry& entry, MutableByteView buffer,
                         const std::function<Status(std::uint64_t offset, ByteView)>& take);

}  // namespace millrace
