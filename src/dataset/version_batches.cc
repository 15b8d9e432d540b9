#include "dataset/version_batches.h"

#include <fmt/format.h>

#include "base/task_group.h"

namespace millrace {

Result<std::vector<VersionItem>> VersionBatches::next() {
  MutexLock lock(mutex_);
  std::vector<VersionItem> batch;
  std::uint64_t bytes = 0;
  while (bytes < kBatchBytes && batch.size() < kBatchItemsMax) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor_.next());
    if (!item) break;
    if (item->entry.kind() == EntryKind::kDirectory) continue;
    if (choose_ && !choose_(item->entry)) continue;
    batch.push_back({.entry = item->entry, .path = std::string(item->path)});
    bytes = std::min(bytes, kBatchBytes) + std::min(item->entry.size(), kBatchBytes);
  }
  return batch;
}

Status for_each_version_item(const RequestContext& context, const VersionReader& reader,
                             std::size_t parallel, VersionBatches& batches,
                             const HandleVersionItem& handle) {
  const auto work = [&](const RequestContext& part) -> Status {
    VersionWindow window(reader);
    for (;;) {
      MR_ASSIGN_OR_RETURN(const std::vector<VersionItem> batch, batches.next());
      if (batch.empty()) return {};
      for (const VersionItem& item : batch) {
        if (part.cancellation().requested())
          return {StatusCode::kCancelled, "the work was cancelled"};
        MR_RETURN_IF_ERROR(handle(part, window, item));
      }
    }
  };
  TaskGroup group(context, parallel);
  for (std::size_t n = 0; n < parallel; ++n)
    MR_RETURN_IF_ERROR(group.add(work));
  return group.wait();
}

Status read_version_file(const RequestContext& context, VersionWindow& window,
                         const ManifestEntry& entry, MutableByteView buffer,
                         const std::function<Status(std::uint64_t offset, ByteView)>& take) {
  for (std::uint64_t offset = 0; offset < entry.size();) {
    MR_ASSIGN_OR_RETURN(const std::size_t count, window.read_at(context, entry, offset, buffer));
    if (count == 0) return {StatusCode::kCorruption, "a file ends before its size"};
    MR_RETURN_IF_ERROR(take(offset, buffer.first(count)));
    offset += count;
  }
  return {};
}

}  // namespace millrace
