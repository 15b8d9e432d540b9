#include "cache/segment_index.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// Whole blocks, so that none is split.
constexpr std::size_t kSegmentIndexPieceBytes = 4096 * kSegmentEntryBytes;

// One pass over the blocks of an index.
class SegmentIndexReader {
 public:
  SegmentIndexReader(const std::string& path, std::uint32_t segment, std::uint64_t data_bytes,
                     const SegmentDamageReport& report)
      : path_(path), segment_(segment), data_bytes_(data_bytes), report_(report) {}

  Status take_header(ByteView bytes) {
    Status status = check_segment_index_header(bytes, segment_);
    if (status.ok() || status.code() == StatusCode::kUnsupported) {
      return status.with_context(fmt::format("cannot use '{}'", path_));
    }
    // The header is written before anything else: with nothing behind it, a kill came first.
    if (data_bytes_ == 0 && bytes.size() <= kSegmentIndexHeaderBytes) return {};
    index_.header_damaged = true;
    report_({path_, std::string(status.message())});
    return {};
  }

  void take_entry(ByteView block) {
    const std::uint32_t slot = slots_++;
    const auto entry = decode_segment_entry(block, segment_);
    if (!entry) return take_damage(slot, entry.error().message());
    if (!*entry) return;
    if ((*entry)->end() > data_bytes_) {
      return take_damage(slot, fmt::format("its record ends at byte {}, the segment at {}",
                                           (*entry)->end(), data_bytes_));
    }
    index_.places.push_back(segment_place(**entry, slot));
  }

  SegmentIndex take() && { return std::move(index_); }

 private:
  void take_damage(std::uint32_t slot, std::string_view what) {
    index_.damaged_slots.push_back(slot);
    report_({path_, fmt::format("entry {}: {}", slot, what)});
  }

  const std::string& path_;
  const std::uint32_t segment_;
  const std::uint64_t data_bytes_;
  const SegmentDamageReport& report_;
  SegmentIndex index_;
  std::uint32_t slots_ = 0;
};

}  // namespace

Result<SegmentIndex> read_segment_index(Disk& disk, const std::string& path, std::uint32_t segment,
                                        std::uint64_t data_bytes,
                                        const SegmentDamageReport& report) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, disk.open(path, OpenMode::kRead));
  SegmentIndexReader reader(path, segment, data_bytes, report);
  std::vector<std::byte> piece(kSegmentIndexPieceBytes);
  for (std::uint64_t offset = 0;; offset += piece.size()) {
    MR_ASSIGN_OR_RETURN(const std::size_t count, file->read_at(offset, piece));
    ByteView bytes = ByteView(piece).first(count);
    if (offset == 0) {
      MR_RETURN_IF_ERROR(reader.take_header(bytes));
      bytes = bytes.subspan(std::min(bytes.size(), kSegmentIndexHeaderBytes));
    }
    for (; bytes.size() >= kSegmentEntryBytes; bytes = bytes.subspan(kSegmentEntryBytes)) {
      reader.take_entry(bytes.first(kSegmentEntryBytes));
    }
    if (count < piece.size()) return std::move(reader).take();
  }
}

Status repair_segment_index(Disk& disk, const std::string& path, std::uint32_t segment,
                            const SegmentIndex& index) {
  if (!index.header_damaged && index.damaged_slots.empty()) return {};
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> file, disk.open(path, OpenMode::kReadWrite));
  if (index.header_damaged) {
    MR_RETURN_IF_ERROR(file->write_at(0, encode_segment_index_header(segment)));
  }
  for (const std::uint32_t slot : index.damaged_slots) {
    MR_RETURN_IF_ERROR(bury_segment_entry(*file, segment, slot));
  }
  return {};
}

Status bury_segment_entry(DiskFile& index, std::uint32_t segment, std::uint32_t slot) {
  return index.write_at(segment_slot_offset(slot), encode_dead_segment_entry(segment));
}

}  // namespace millrace
