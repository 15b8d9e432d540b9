#include "dataset/sample_index_format.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::string_view kSampleMagic = "MRSAMPLE";
constexpr std::uint32_t kSampleFormat = 1;
constexpr std::size_t kSampleFormatAt = 8;
constexpr std::size_t kSampleTablesChecksumAt = 12;
constexpr std::size_t kSampleShardsAt = 16;
constexpr std::size_t kSampleBlocksAt = 24;
constexpr std::size_t kSampleSamplesAt = 32;
constexpr std::size_t kSampleDigestAt = 40;
constexpr std::size_t kSampleZerosAt = 72;
constexpr std::size_t kSampleTrailerChecksumAt = 92;
// What compression may add to bytes that do not compress.
constexpr std::uint64_t kSampleStoredBytesMax = kSampleBlockBytesMax + kSampleBlockBytesMax / 128;

std::unexpected<Status> bad_samples(std::string_view why) {
  return failure(StatusCode::kCorruption, fmt::format("the sample index {}", why));
}

bool is_possible(const SampleBlockPlace& block) {
  return block.stored_bytes >= 1 && block.stored_bytes <= kSampleStoredBytesMax &&
         block.raw_bytes >= 1 && block.raw_bytes <= kSampleBlockBytesMax && block.samples >= 1 &&
         block.samples <= kSampleBlockSamplesMax;
}

// Whether shards are in order, and have the samples that their blocks have.
bool shards_hold_their_blocks(const SampleIndexTable& table) {
  std::size_t block = 0;
  for (std::size_t n = 0; n < table.shards.size(); ++n) {
    const SampleShard& shard = table.shards[n];
    if (n > 0 && table.shards[n - 1].entry >= shard.entry) return false;
    if (shard.blocks > table.blocks.size() - block) return false;
    std::uint64_t samples = 0;
    for (const std::size_t end = block + shard.blocks; block < end; ++block)
      samples += table.blocks[block].samples;
    if (samples != shard.samples) return false;
  }
  return block == table.blocks.size();
}

}  // namespace

std::uint64_t SampleIndexTable::samples() const {
  std::uint64_t sum = 0;
  for (const SampleShard& shard : shards)
    sum += shard.samples;
  return sum;
}

std::uint64_t SampleIndexTable::stored_bytes() const {
  std::uint64_t sum = 0;
  for (const SampleBlockPlace& block : blocks)
    sum += block.stored_bytes;
  return sum;
}

std::vector<std::byte> encode_sample_tables(const SampleIndexTable& table) {
  const SampleTrailer sizes{.shards = table.shards.size(), .blocks = table.blocks.size()};
  std::vector<std::byte> bytes(sizes.table_bytes() + kSampleTrailerBytes);
  std::byte* out = bytes.data();
  for (const SampleShard& shard : table.shards) {
    store_little_endian(out, shard.entry);
    store_little_endian(out + 4, shard.blocks);
    store_little_endian(out + 8, shard.samples);
    out += kSampleShardBytes;
  }
  for (const SampleBlockPlace& block : table.blocks) {
    store_little_endian(out, block.stored_bytes);
    store_little_endian(out + 4, block.raw_bytes);
    store_little_endian(out + 8, block.samples);
    store_little_endian(out + 12, block.checksum);
    out += kSampleBlockPlaceBytes;
  }
  std::ranges::copy(as_bytes(kSampleMagic), out);
  store_little_endian(out + kSampleFormatAt, kSampleFormat);
  store_little_endian(out + kSampleTablesChecksumAt,
                      crc32c(ByteView(bytes).first(sizes.table_bytes())));
  store_little_endian(out + kSampleShardsAt, sizes.shards);
  store_little_endian(out + kSampleBlocksAt, sizes.blocks);
  store_little_endian(out + kSampleSamplesAt, table.samples());
  std::ranges::copy(table.content_digest, out + kSampleDigestAt);
  store_little_endian(out + kSampleTrailerChecksumAt, crc32c({out, kSampleTrailerChecksumAt}));
  return bytes;
}

Result<SampleTrailer> decode_sample_trailer(ByteView bytes, std::uint64_t index_bytes) {
  if (bytes.size() != kSampleTrailerBytes ||
      as_text(bytes.first(kSampleMagic.size())) != kSampleMagic) {
    return bad_samples("is none, or its end is missing");
  }
  const std::byte* const from = bytes.data();
  // Before the checksum, whose place another format may have moved.
  const auto format = load_little_endian<std::uint32_t>(from + kSampleFormatAt);
  if (format != kSampleFormat) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the sample index was written in format {}, this Millrace knows "
                               "only format {}; use a later Millrace",
                               format, kSampleFormat));
  }
  if (load_little_endian<std::uint32_t>(from + kSampleTrailerChecksumAt) !=
      crc32c(bytes.first(kSampleTrailerChecksumAt))) {
    return bad_samples("fails the checksum of its trailer");
  }
  SampleTrailer trailer{
      .shards = load_little_endian<std::uint64_t>(from + kSampleShardsAt),
      .blocks = load_little_endian<std::uint64_t>(from + kSampleBlocksAt),
      .samples = load_little_endian<std::uint64_t>(from + kSampleSamplesAt),
      .tables_checksum = load_little_endian<std::uint32_t>(from + kSampleTablesChecksumAt)};
  std::ranges::copy(bytes.subspan(kSampleDigestAt, trailer.content_digest.size()),
                    trailer.content_digest.begin());
  const ByteView zeros = bytes.subspan(kSampleZerosAt, kSampleTrailerChecksumAt - kSampleZerosAt);
  if (trailer.shards > kSampleTableMax || trailer.blocks > kSampleTableMax ||
      index_bytes < trailer.table_bytes() + kSampleTrailerBytes ||
      std::ranges::any_of(zeros, [](std::byte byte) { return byte != std::byte{0}; })) {
    return bad_samples("has numbers in its trailer that none has");
  }
  return trailer;
}

Result<SampleIndexTable> decode_sample_tables(const SampleTrailer& trailer, ByteView bytes,
                                              std::uint64_t index_bytes) {
  if (bytes.size() != trailer.table_bytes() || crc32c(bytes) != trailer.tables_checksum) {
    return bad_samples("fails the checksum of its tables");
  }
  SampleIndexTable table{.content_digest = trailer.content_digest};
  const std::byte* from = bytes.data();
  table.shards.reserve(trailer.shards);
  for (std::uint64_t n = 0; n < trailer.shards; ++n, from += kSampleShardBytes) {
    table.shards.push_back({.entry = load_little_endian<std::uint32_t>(from),
                            .blocks = load_little_endian<std::uint32_t>(from + 4),
                            .samples = load_little_endian<std::uint64_t>(from + 8)});
  }
  table.blocks.reserve(trailer.blocks);
  for (std::uint64_t n = 0; n < trailer.blocks; ++n, from += kSampleBlockPlaceBytes) {
    table.blocks.push_back({.stored_bytes = load_little_endian<std::uint32_t>(from),
                            .raw_bytes = load_little_endian<std::uint32_t>(from + 4),
                            .samples = load_little_endian<std::uint32_t>(from + 8),
                            .checksum = load_little_endian<std::uint32_t>(from + 12)});
  }
  if (!std::ranges::all_of(table.blocks, is_possible) || !shards_hold_their_blocks(table) ||
      table.samples() != trailer.samples ||
      table.stored_bytes() + trailer.table_bytes() + kSampleTrailerBytes != index_bytes) {
    return bad_samples("has numbers in its tables that none has");
  }
  return table;
}

}  // namespace millrace
