#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/object_version.h"
#include "cache/unit.h"

namespace millrace {

// The bytes of segment files and their indexes; docs/formats/cache_segments.md has the tables.
// What is decoded here came from a disk that may have lost, torn or flipped any of it: kCorruption
// says what is wrong, kUnsupported that a later Millrace wrote it.
inline constexpr std::uint32_t kSegmentPageBytes = 4096;
inline constexpr std::size_t kSegmentEntryBytes = 64;
inline constexpr std::size_t kSegmentIndexHeaderBytes = 64;
inline constexpr std::uint32_t kSegmentUnitsMax = kSmallObjectBytesMax / kUnitBytes;
// Store, key and identity together.
inline constexpr std::size_t kSegmentTextBytesMax = 8 * kKiB;

// "0000002a.seg" and "0000002a.idx".
std::string segment_data_name(std::uint32_t segment);
std::string segment_index_name(std::uint32_t segment);
struct SegmentName {
  std::uint32_t segment = 0;
  bool is_index = false;
};
// Nothing for a name that is neither.
std::optional<SegmentName> parse_segment_name(std::string_view name);

using SegmentBlock = std::array<std::byte, kSegmentEntryBytes>;

// The start of an index. The shape of it is that of all versions.
SegmentBlock encode_segment_index_header(std::uint32_t segment);
Status check_segment_index_header(ByteView bytes, std::uint32_t segment);

// One live record, as its index knows it.
struct SegmentEntry {
  ObjectDigest digest;
  std::uint32_t segment = 0;
  std::uint32_t page = 0;  // Where the record starts.
  std::uint32_t header_bytes = 0;
  std::uint32_t stored_bytes = 0;
  std::uint32_t object_bytes = 0;

  std::uint64_t offset() const { return std::uint64_t{page} * kSegmentPageBytes; }
  std::uint64_t end() const { return offset() + header_bytes + stored_bytes; }
  std::uint32_t pages() const {
    return (header_bytes + stored_bytes + kSegmentPageBytes - 1) / kSegmentPageBytes;
  }
  // What the record takes: whole pages.
  std::uint64_t pages_bytes() const { return std::uint64_t{pages()} * kSegmentPageBytes; }
  bool operator==(const SegmentEntry&) const = default;
};
SegmentBlock encode_segment_entry(const SegmentEntry& entry);
// What takes the place of an entry whose record is gone.
SegmentBlock encode_dead_segment_entry(std::uint32_t segment);
// Nothing for a dead entry.
Result<std::optional<SegmentEntry>> decode_segment_entry(ByteView bytes, std::uint32_t segment);

// What stands before the data of a record. The texts point into the decoded bytes.
struct SegmentRecordHeader {
  ObjectDigest digest;
  std::uint32_t object_bytes = 0;
  std::uint32_t stored_bytes = 0;
  std::array<std::uint32_t, kSegmentUnitsMax> checksums{};  // Of the stored units; the rest is 0.
  std::string_view store;
  std::string_view key;
  std::string_view identity;
};
// kInvalidArgument when the texts are too long.
Result<std::vector<std::byte>> encode_segment_record_header(
    const ObjectVersion& version, std::uint32_t stored_bytes,
    std::span<const std::uint32_t> checksums);
// `bytes` are the whole header, as long as the index says.
Result<SegmentRecordHeader> decode_segment_record_header(ByteView bytes);

}  // namespace millrace
