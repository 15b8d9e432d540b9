#include "cache/segment_format.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::string_view kSegmentIndexMagic = "MRSEGIDX";
constexpr std::string_view kSegmentRecordMagic = "MRSEGREC";
constexpr std::uint32_t kSegmentFormat = 1;
// Both headers begin with magic and format.
constexpr std::size_t kSegmentFormatAt = 8;

// Of a block of an index.
constexpr std::size_t kSegmentBlockChecksumAt = 60;
constexpr std::size_t kSegmentIndexNumberAt = 12;
constexpr std::size_t kSegmentEntrySegmentAt = 16;
constexpr std::size_t kSegmentEntryPageAt = 20;
constexpr std::size_t kSegmentEntryHeaderBytesAt = 24;
constexpr std::size_t kSegmentEntryStoredBytesAt = 28;
constexpr std::size_t kSegmentEntryObjectBytesAt = 32;
constexpr std::size_t kSegmentEntryStateAt = 36;
// Words, so that a dump of an index reads by itself.
constexpr std::uint32_t kSegmentEntryLive = 0x4556494c;  // "LIVE"
constexpr std::uint32_t kSegmentEntryDead = 0x44414544;  // "DEAD"

// Of a record's header.
constexpr std::size_t kSegmentRecordHeaderBytesAt = 12;
constexpr std::size_t kSegmentRecordDigestAt = 16;
constexpr std::size_t kSegmentRecordObjectBytesAt = 32;
constexpr std::size_t kSegmentRecordStoredBytesAt = 36;
constexpr std::size_t kSegmentRecordStoreBytesAt = 40;
constexpr std::size_t kSegmentRecordKeyBytesAt = 44;
constexpr std::size_t kSegmentRecordIdentityBytesAt = 48;
constexpr std::size_t kSegmentRecordChecksumAt = 52;
constexpr std::size_t kSegmentRecordUnitChecksumsAt = 64;
constexpr std::size_t kSegmentRecordTextsAt = 128;
constexpr std::size_t kSegmentRecordAlignment = 64;
constexpr std::size_t kSegmentRecordHeaderBytesMax = kSegmentRecordTextsAt + kSegmentTextBytesMax;

std::uint32_t segment_u32(ByteView bytes, std::size_t at) {
  return load_little_endian<std::uint32_t>(bytes.data() + at);
}

void seal_segment_block(SegmentBlock& block) {
  store_little_endian(block.data() + kSegmentBlockChecksumAt,
                      crc32c(ByteView(block).first(kSegmentBlockChecksumAt)));
}

bool is_sealed_segment_block(ByteView block) {
  return segment_u32(block, kSegmentBlockChecksumAt) ==
         crc32c(block.first(kSegmentBlockChecksumAt));
}

bool is_zeroed_segment(ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Status damaged_segment(ByteView bytes, std::string_view why) {
  return {StatusCode::kCorruption, std::string(is_zeroed_segment(bytes) ? "it is all zeros" : why)};
}

Status later_segment_format(std::uint32_t format) {
  return {StatusCode::kUnsupported,
          fmt::format("its format is {}, this Millrace knows only {}; use the Millrace that wrote "
                      "it, or another cache directory",
                      format, kSegmentFormat)};
}

// The checksum of a record's header leaves out its own place.
std::uint32_t segment_record_header_checksum(ByteView header) {
  const std::uint32_t before = crc32c(header.first(kSegmentRecordChecksumAt));
  return crc32c(header.subspan(kSegmentRecordChecksumAt + sizeof before), before);
}

bool segment_sizes_are_possible(std::uint32_t header_bytes, std::uint32_t stored_bytes,
                                std::uint32_t object_bytes) {
  return header_bytes % kSegmentRecordAlignment == 0 && header_bytes >= kSegmentRecordTextsAt &&
         header_bytes <= kSegmentRecordHeaderBytesMax && stored_bytes <= kSmallObjectBytesMax &&
         stored_bytes == object_bytes;
}

}  // namespace

std::string segment_data_name(std::uint32_t segment) { return fmt::format("{:08x}.seg", segment); }
std::string segment_index_name(std::uint32_t segment) { return fmt::format("{:08x}.idx", segment); }

std::optional<SegmentName> parse_segment_name(std::string_view name) {
  constexpr std::size_t kDigits = 8;
  if (name.size() != kDigits + 4) return std::nullopt;
  SegmentName parsed{.segment = 0, .is_index = name.ends_with(".idx")};
  const char* const end = name.data() + kDigits;
  if (std::from_chars(name.data(), end, parsed.segment, 16).ptr != end) return std::nullopt;
  // Upper case would be a second name for the same number.
  const bool ours =
      name == segment_data_name(parsed.segment) || name == segment_index_name(parsed.segment);
  return ours ? std::optional(parsed) : std::nullopt;
}

SegmentBlock encode_segment_index_header(std::uint32_t segment) {
  SegmentBlock block{};
  std::ranges::copy(as_bytes(kSegmentIndexMagic), block.begin());
  store_little_endian(block.data() + kSegmentFormatAt, kSegmentFormat);
  store_little_endian(block.data() + kSegmentIndexNumberAt, segment);
  seal_segment_block(block);
  return block;
}

Status check_segment_index_header(ByteView bytes, std::uint32_t segment) {
  if (bytes.size() < kSegmentIndexHeaderBytes) {
    return {StatusCode::kCorruption, "it ends inside its header"};
  }
  const ByteView header = bytes.first(kSegmentIndexHeaderBytes);
  if (!is_sealed_segment_block(header)) {
    return damaged_segment(header, "its header fails its checksum");
  }
  if (as_text(header.first(kSegmentIndexMagic.size())) != kSegmentIndexMagic) {
    return {StatusCode::kCorruption, "it is no index of a segment"};
  }
  const std::uint32_t format = segment_u32(header, kSegmentFormatAt);
  if (format != kSegmentFormat) return later_segment_format(format);
  const std::uint32_t number = segment_u32(header, kSegmentIndexNumberAt);
  if (number == segment) return {};
  return {StatusCode::kCorruption, fmt::format("it is the index of segment {:08x}", number)};
}

SegmentBlock encode_segment_entry(const SegmentEntry& entry) {
  SegmentBlock block{};
  std::ranges::copy(entry.digest.bytes, block.begin());
  store_little_endian(block.data() + kSegmentEntrySegmentAt, entry.segment);
  store_little_endian(block.data() + kSegmentEntryPageAt, entry.page);
  store_little_endian(block.data() + kSegmentEntryHeaderBytesAt, entry.header_bytes);
  store_little_endian(block.data() + kSegmentEntryStoredBytesAt, entry.stored_bytes);
  store_little_endian(block.data() + kSegmentEntryObjectBytesAt, entry.object_bytes);
  store_little_endian(block.data() + kSegmentEntryStateAt, kSegmentEntryLive);
  seal_segment_block(block);
  return block;
}

SegmentBlock encode_dead_segment_entry(std::uint32_t segment) {
  SegmentBlock block{};
  store_little_endian(block.data() + kSegmentEntrySegmentAt, segment);
  store_little_endian(block.data() + kSegmentEntryStateAt, kSegmentEntryDead);
  seal_segment_block(block);
  return block;
}

Result<std::optional<SegmentEntry>> decode_segment_entry(ByteView bytes, std::uint32_t segment) {
  if (!is_sealed_segment_block(bytes)) {
    return failure(damaged_segment(bytes, "it fails its checksum"));
  }
  SegmentEntry entry;
  std::ranges::copy(bytes.first(entry.digest.bytes.size()), entry.digest.bytes.begin());
  entry.segment = segment_u32(bytes, kSegmentEntrySegmentAt);
  entry.page = segment_u32(bytes, kSegmentEntryPageAt);
  entry.header_bytes = segment_u32(bytes, kSegmentEntryHeaderBytesAt);
  entry.stored_bytes = segment_u32(bytes, kSegmentEntryStoredBytesAt);
  entry.object_bytes = segment_u32(bytes, kSegmentEntryObjectBytesAt);
  const std::uint32_t state = segment_u32(bytes, kSegmentEntryStateAt);
  if (entry.segment != segment) {
    return failure(StatusCode::kCorruption,
                   fmt::format("it belongs to segment {:08x}", entry.segment));
  }
  if (state == kSegmentEntryDead) return std::nullopt;
  if (state != kSegmentEntryLive ||
      !segment_sizes_are_possible(entry.header_bytes, entry.stored_bytes, entry.object_bytes)) {
    return failure(StatusCode::kCorruption, "it holds numbers that no record has");
  }
  return entry;
}

Result<std::vector<std::byte>> encode_segment_record_header(
    const ObjectVersion& version, std::uint32_t stored_bytes,
    std::span<const std::uint32_t> checksums) {
  const std::string_view texts[] = {version.store().value(), version.key().value(),
                                    version.identity().value()};
  const std::size_t text_bytes = texts[0].size() + texts[1].size() + texts[2].size();
  if (text_bytes > kSegmentTextBytesMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("store, key and identity have {} bytes together, a cached object "
                               "has at most {}",
                               text_bytes, kSegmentTextBytesMax));
  }
  const std::size_t bytes = (kSegmentRecordTextsAt + text_bytes + kSegmentRecordAlignment - 1) /
                            kSegmentRecordAlignment * kSegmentRecordAlignment;
  std::vector<std::byte> header(bytes);
  std::byte* const out = header.data();
  std::ranges::copy(as_bytes(kSegmentRecordMagic), out);
  store_little_endian(out + kSegmentFormatAt, kSegmentFormat);
  store_little_endian(out + kSegmentRecordHeaderBytesAt, static_cast<std::uint32_t>(bytes));
  std::ranges::copy(version.digest().bytes, out + kSegmentRecordDigestAt);
  store_little_endian(out + kSegmentRecordObjectBytesAt,
                      static_cast<std::uint32_t>(version.size()));
  store_little_endian(out + kSegmentRecordStoredBytesAt, stored_bytes);
  store_little_endian(out + kSegmentRecordStoreBytesAt,
                      static_cast<std::uint32_t>(texts[0].size()));
  store_little_endian(out + kSegmentRecordKeyBytesAt, static_cast<std::uint32_t>(texts[1].size()));
  store_little_endian(out + kSegmentRecordIdentityBytesAt,
                      static_cast<std::uint32_t>(texts[2].size()));
  for (std::size_t unit = 0; unit < checksums.size(); ++unit) {
    store_little_endian(out + kSegmentRecordUnitChecksumsAt + unit * sizeof(std::uint32_t),
                        checksums[unit]);
  }
  std::byte* text_out = out + kSegmentRecordTextsAt;
  for (const std::string_view text : texts) {
    text_out = std::ranges::copy(as_bytes(text), text_out).out;
  }
  store_little_endian(out + kSegmentRecordChecksumAt, segment_record_header_checksum(header));
  return header;
}

Result<SegmentRecordHeader> decode_segment_record_header(ByteView bytes) {
  if (bytes.size() < kSegmentRecordTextsAt ||
      segment_u32(bytes, kSegmentRecordChecksumAt) != segment_record_header_checksum(bytes)) {
    return failure(damaged_segment(bytes, "its header fails its checksum"));
  }
  if (as_text(bytes.first(kSegmentRecordMagic.size())) != kSegmentRecordMagic) {
    return failure(StatusCode::kCorruption, "it is no record");
  }
  const std::uint32_t format = segment_u32(bytes, kSegmentFormatAt);
  if (format != kSegmentFormat) return failure(later_segment_format(format));
  SegmentRecordHeader header;
  std::ranges::copy(bytes.subspan(kSegmentRecordDigestAt, header.digest.bytes.size()),
                    header.digest.bytes.begin());
  header.object_bytes = segment_u32(bytes, kSegmentRecordObjectBytesAt);
  header.stored_bytes = segment_u32(bytes, kSegmentRecordStoredBytesAt);
  for (std::size_t unit = 0; unit < header.checksums.size(); ++unit) {
    header.checksums[unit] =
        segment_u32(bytes, kSegmentRecordUnitChecksumsAt + unit * sizeof(std::uint32_t));
  }
  // In 64 bits, so that lengths which no record has cannot wrap around.
  const std::uint64_t store_bytes = segment_u32(bytes, kSegmentRecordStoreBytesAt);
  const std::uint64_t key_bytes = segment_u32(bytes, kSegmentRecordKeyBytesAt);
  const std::uint64_t identity_bytes = segment_u32(bytes, kSegmentRecordIdentityBytesAt);
  const std::string_view texts = as_text(bytes.subspan(kSegmentRecordTextsAt));
  if (segment_u32(bytes, kSegmentRecordHeaderBytesAt) != bytes.size() ||
      store_bytes + key_bytes + identity_bytes > texts.size() ||
      !segment_sizes_are_possible(static_cast<std::uint32_t>(bytes.size()), header.stored_bytes,
                                  header.object_bytes)) {
    return failure(StatusCode::kCorruption, "its header holds numbers that no record has");
  }
  header.store = texts.substr(0, store_bytes);
  header.key = texts.substr(store_bytes, key_bytes);
  header.identity = texts.substr(store_bytes + key_bytes, identity_bytes);
  return header;
}

}  // namespace millrace
