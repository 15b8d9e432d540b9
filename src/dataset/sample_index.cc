#include "dataset/sample_index.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "dataset/frame_format.h"

namespace millrace {
namespace {

// Holds the tables of about 8,000 shards or blocks.
constexpr std::uint64_t kSampleTailBytes = 128 * kKiB;

// The index of the last sum that is not above `value`, which is below the last of all.
std::uint32_t find_in_sums(const std::vector<std::uint64_t>& sums, std::uint64_t value) {
  return static_cast<std::uint32_t>(std::ranges::upper_bound(sums, value) - sums.begin() - 1);
}

}  // namespace

SampleIndex::SampleIndex(SampleIndexTable table, SampleIndexFetch fetch)
    : table_(std::move(table)),
      fetch_(std::move(fetch)),
      shard_samples_{0},
      shard_blocks_{0},
      block_samples_{0},
      block_offsets_{0} {
  for (const SampleShard& shard : table_.shards) {
    shard_samples_.push_back(shard_samples_.back() + shard.samples);
    shard_blocks_.push_back(shard_blocks_.back() + shard.blocks);
  }
  for (const SampleBlockPlace& block : table_.blocks) {
    block_samples_.push_back(block_samples_.back() + block.samples);
    block_offsets_.push_back(block_offsets_.back() + block.stored_bytes);
  }
}

Result<std::unique_ptr<SampleIndex>> SampleIndex::open(const RequestContext& context,
                                                       SampleIndexFetch fetch,
                                                       std::uint64_t index_bytes) {
  if (index_bytes < kSampleTrailerBytes) {
    return failure(StatusCode::kCorruption, "the sample index ends inside its trailer");
  }
  std::uint64_t tail_bytes = std::min(kSampleTailBytes, index_bytes);
  MR_ASSIGN_OR_RETURN(Slice tail, fetch(context, index_bytes - tail_bytes, tail_bytes));
  MR_ASSIGN_OR_RETURN(
      const SampleTrailer trailer,
      decode_sample_trailer(tail.bytes().subspan(tail_bytes - kSampleTrailerBytes), index_bytes));
  if (trailer.table_bytes() + kSampleTrailerBytes > tail_bytes) {
    tail_bytes = trailer.table_bytes() + kSampleTrailerBytes;
    MR_ASSIGN_OR_RETURN(tail, fetch(context, index_bytes - tail_bytes, tail_bytes));
  }
  const ByteView tables = tail.bytes().subspan(
      tail_bytes - kSampleTrailerBytes - trailer.table_bytes(), trailer.table_bytes());
  MR_ASSIGN_OR_RETURN(SampleIndexTable table, decode_sample_tables(trailer, tables, index_bytes));
  return std::unique_ptr<SampleIndex>(new SampleIndex(std::move(table), std::move(fetch)));
}

SamplePlace SampleIndex::locate(std::uint64_t sample) const {
  const std::uint32_t block = find_in_sums(block_samples_, sample);
  return {.shard = find_in_sums(shard_samples_, sample),
          .block = block,
          .at = static_cast<std::uint32_t>(sample - block_samples_[block])};
}

Result<SampleBlock> SampleIndex::block(const RequestContext& context, std::uint32_t block) const {
  const SampleBlockPlace& place = table_.blocks[block];
  const auto where = [&] { return fmt::format("block {} of the sample index", block); };
  MR_ASSIGN_OR_RETURN(const Slice stored,
                      fetch_(context, block_offsets_[block], place.stored_bytes));
  if (crc32c(stored.bytes()) != place.checksum) {
    return failure(StatusCode::kCorruption, fmt::format("{} fails its checksum", where()));
  }
  std::vector<std::byte> raw(place.raw_bytes);
  MR_RETURN_IF_ERROR(decompress_frame(stored.bytes(), raw).with_context(where()));
  auto decoded = decode_sample_block(raw);
  if (!decoded) return failure(decoded.error().with_context(where()));
  if (decoded->samples.size() != place.samples) {
    return failure(StatusCode::kCorruption, fmt::format("{} has {} samples instead of {}", where(),
                                                        decoded->samples.size(), place.samples));
  }
  return decoded;
}

}  // namespace millrace
