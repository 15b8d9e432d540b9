#include "dataset/publish_scan.h"

#include <utility>
#include <vector>

#include "dataset/publish_entries.h"

namespace millrace {

PublishScan::PublishScan(const std::string& scratch, const PublishProgress& progress)
    : sorter_({.directory = scratch,
               .report =
                   [this](std::string_view path, std::string_view why) {
                     problems_.note({std::string(path), std::string(why)});
                     return Status();
                   }}),
      progress_(progress) {}

Status PublishScan::take(std::span<SourceEntry> entries) {
  std::vector<std::byte> payload;
  MutexLock lock(mutex_);
  for (const SourceEntry& entry : entries) {
    encode_source_payload(entry, payload);
    MR_RETURN_IF_ERROR(sorter_.add(entry.path, entry.kind, payload));
  }
  lock.unlock();
  progress_.scanned(entries.size());
  return {};
}

Status PublishScan::report(SourceProblem problem) {
  problems_.note(std::move(problem));
  return {};
}

Status PublishScan::seal() {
  MutexLock lock(mutex_);
  return sorter_.seal();
}

Result<std::optional<SourceEntry>> PublishScan::next() {
  MutexLock lock(mutex_);
  MR_ASSIGN_OR_RETURN(const std::optional<SortedEntry> sorted, sorter_.next());
  if (!sorted) return std::nullopt;
  SourceEntry entry{.path = std::string(sorted->path), .kind = sorted->kind};
  if (sorted->implied) {
    entry.mode = 0755;
  } else {
    MR_RETURN_IF_ERROR(decode_source_payload(sorted->payload, entry));
  }
  return entry;
}

}  // namespace millrace
