#include "service/version_sample_files.h"

#include <algorithm>

#include "base/current_request.h"
#include "vfs/node_number.h"

namespace millrace {

Result<Slice> VersionSampleFiles::read(const RequestContext& context, EntryIndex file,
                                       ByteRange range) {
  Waiter<Slice> waiter;
  start_read(context, file, range, waiter.completion());
  return waiter.wait();
}

void VersionSampleFiles::start_read(const RequestContext& context, EntryIndex file, ByteRange range,
                                    Completion<Slice> done) {
  const auto opened = tree_->open(context, version_node(tree_->identity().number, file));
  if (!opened) {
    done.complete(failure(opened.error()));
    return;
  }
  (*opened)->read(context, range, std::move(done));
}

void VersionSampleFiles::expect(const RequestContext& context, EntryIndex file, ByteRange range) {
  const CurrentRequest current(context);
  std::vector<PlannedRead> reads;
  if (!plan_read(file, range, reads).ok()) return;
  const RequestContext charged = context.with_account(account(*context.caller()));
  for (const PlannedRead& read : reads)
    tree_->reads().cache.expect(charged, read.object, read.range);
}

Status VersionSampleFiles::plan_read(EntryIndex file, ByteRange range,
                                     std::vector<PlannedRead>& reads) {
  const std::shared_ptr<const VersionObjects> objects = tree_->objects();
  MR_ASSIGN_OR_RETURN(const ManifestEntry entry, objects->manifest().entry(file));
  MR_ASSIGN_OR_RETURN(const std::vector<FilePart> parts, objects->parts(entry));
  for (const FilePart& part : parts) {
    const std::uint64_t begin = std::max(part.file_offset, range.offset);
    const std::uint64_t end = std::min(part.file_offset + part.bytes.length, range.end());
    if (begin >= end) continue;
    reads.push_back({.object = part.object,
                     .range = {part.bytes.offset + (begin - part.file_offset), end - begin}});
  }
  return {};
}

std::shared_ptr<FetchAccount> VersionSampleFiles::account(const Caller& caller) {
  ReadObserver* const observer = tree_->reads().observer;
  return observer == nullptr ? nullptr : observer->account(tree_->ref().text(), caller);
}

}  // namespace millrace
