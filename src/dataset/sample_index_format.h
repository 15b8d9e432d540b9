#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest_format.h"
#include "dataset/sample_block.h"
#include "platform/digest.h"

// The tables and the trailer of a sample index (docs/formats/sample_index.md).
namespace millrace {

inline constexpr std::size_t kSampleShardBytes = 16;
inline constexpr std::size_t kSampleBlockPlaceBytes = 16;
inline constexpr std::size_t kSampleTrailerBytes = 96;
// Of shards, and of blocks: 16 bytes of memory each.
inline constexpr std::uint64_t kSampleTableMax = 16'000'000;

// A tar file of the version.
struct SampleShard {
  EntryIndex entry = 0;  // In the manifest: all manifests of one content count alike.
  std::uint32_t blocks = 0;
  std::uint64_t samples = 0;
  bool operator==(const SampleShard&) const = default;
};

// How a block lies in the index. Blocks follow one another from its beginning.
struct SampleBlockPlace {
  std::uint32_t stored_bytes = 0;
  std::uint32_t raw_bytes = 0;
  std::uint32_t samples = 0;
  std::uint32_t checksum = 0;  // CRC-32C of the stored bytes.
  bool operator==(const SampleBlockPlace&) const = default;
};

// 1. Shards are in the order of their entries. The blocks of a shard follow those of the shard
//    before, and hold its samples in order.
// 2. The sum of the blocks of all shards is the number of blocks.
struct SampleIndexTable {
  Sha256Digest content_digest{};
  std::vector<SampleShard> shards = {};
  std::vector<SampleBlockPlace> blocks = {};

  std::uint64_t samples() const;
  std::uint64_t stored_bytes() const;  // Of all blocks.
  bool operator==(const SampleIndexTable&) const = default;
};

struct SampleTrailer {
  std::uint64_t shards = 0;
  std::uint64_t blocks = 0;
  std::uint64_t samples = 0;
  std::uint32_t tables_checksum = 0;
  Sha256Digest content_digest{};

  std::uint64_t table_bytes() const {
    return shards * kSampleShardBytes + blocks * kSampleBlockPlaceBytes;
  }
};

// Both tables and the trailer: what stands behind the blocks.
std::vector<std::byte> encode_sample_tables(const SampleIndexTable& table);
// `bytes` are the last kSampleTrailerBytes of an index of `index_bytes`. kUnsupported for another
// format, kCorruption for what an encoder does not write.
Result<SampleTrailer> decode_sample_trailer(ByteView bytes, std::uint64_t index_bytes);
// `bytes` are the trailer.table_bytes() before the trailer.
Result<SampleIndexTable> decode_sample_tables(const SampleTrailer& trailer, ByteView bytes,
                                              std::uint64_t index_bytes);

}  // namespace millrace
