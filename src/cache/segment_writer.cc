#include "cache/segment_writer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cache/segment_index.h"

namespace millrace {
namespace {

// Up to here, copying the data behind its header costs less than a second write.
constexpr std::size_t kSegmentCopiedBytesMax = 64 * kKiB;

}  // namespace

Result<std::unique_ptr<SegmentWriter>> SegmentWriter::create(Disk& disk,
                                                             const std::string& data_path,
                                                             const std::string& index_path,
                                                             std::uint32_t segment,
                                                             std::uint64_t bytes_max) {
  const auto make = [&]() -> Result<std::unique_ptr<SegmentWriter>> {
    // The index first: data without an index is what only a power loss leaves.
    MR_ASSIGN_OR_RETURN(auto index, disk.open(index_path, OpenMode::kCreateNew));
    MR_RETURN_IF_ERROR(index->write_at(0, encode_segment_index_header(segment)));
    MR_ASSIGN_OR_RETURN(auto data, disk.open(data_path, OpenMode::kCreateNew));
    return std::unique_ptr<SegmentWriter>(
        new SegmentWriter(segment, bytes_max, std::move(data), std::move(index)));
  };
  auto writer = make();
  if (!writer && writer.error().code() != StatusCode::kConflict) {
    // What stays is empty, and the next start clears it away.
    (void)disk.remove(data_path);
    (void)disk.remove(index_path);
  }
  return writer;
}

SegmentWriter::SegmentWriter(std::uint32_t segment, std::uint64_t bytes_max,
                             std::unique_ptr<DiskFile> data, std::unique_ptr<DiskFile> index)
    : segment_(segment),
      pages_max_(std::min<std::uint64_t>(bytes_max / kSegmentPageBytes, UINT32_MAX)),
      data_(std::move(data)),
      index_(std::move(index)) {}

std::optional<std::uint32_t> SegmentWriter::reserve(std::uint32_t pages) {
  MutexLock lock(mutex_);
  if (end_page_ != 0 && std::uint64_t{end_page_} + pages > pages_max_) return std::nullopt;
  return std::exchange(end_page_, end_page_ + pages);
}

Status SegmentWriter::write_record(const SegmentEntry& entry, ByteView header, ByteView data) {
  if (data.size() > kSegmentCopiedBytesMax) {
    MR_RETURN_IF_ERROR(data_->write_at(entry.offset(), header));
    return data_->write_at(entry.offset() + header.size(), data);
  }
  std::vector<std::byte> record(header.size() + data.size());
  std::ranges::copy(data, std::ranges::copy(header, record.begin()).out);
  return data_->write_at(entry.offset(), record);
}

Result<std::uint32_t> SegmentWriter::append(const SegmentEntry& entry) {
  MutexLock lock(mutex_);
  MR_RETURN_IF_ERROR(index_->write_at(segment_slot_offset(slots_), encode_segment_entry(entry)));
  return slots_++;
}

Status SegmentWriter::give_back(const SegmentEntry& entry) {
  // Before the place is free for others: the hole must not hit what they write.
  Status punched = data_->punch(entry.offset(), entry.pages_bytes());
  MutexLock lock(mutex_);
  if (end_page_ != entry.page + entry.pages()) return punched;
  end_page_ = entry.page;
  return {};
}

}  // namespace millrace
