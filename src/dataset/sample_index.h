#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/buffer.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/sample_index_format.h"

namespace millrace {

// Exactly these bytes of an index. Called from any thread, blocks.
using SampleIndexFetch = std::function<Result<Slice>(const RequestContext& context,
                                                     std::uint64_t offset, std::uint64_t length)>;

// Where one sample is in an index.
struct SamplePlace {
  std::uint32_t shard = 0;
  std::uint32_t block = 0;  // Of the whole index.
  std::uint32_t at = 0;     // In the block.
  bool operator==(const SamplePlace&) const = default;
};

// The samples of all tar shards of a version. Holds the tables and sums over them, 48 bytes for
// each shard and block; the samples themselves are fetched block by block and not kept.
//
// Trusts nothing that it reads: kCorruption for what fails a check. Safe from any thread.
class SampleIndex {
 public:
  // Takes one fetch where the tables are small, else two. What `fetch` uses outlives the index.
  static Result<std::unique_ptr<SampleIndex>> open(const RequestContext& context,
                                                   SampleIndexFetch fetch,
                                                   std::uint64_t index_bytes);

  const SampleIndexTable& table() const { return table_; }
  std::uint64_t samples() const { return shard_samples_.back(); }
  // The number of the first sample of a shard; of one behind the last: the number of samples.
  std::uint64_t first_sample(std::uint32_t shard) const { return shard_samples_[shard]; }
  std::uint32_t first_block(std::uint32_t shard) const { return shard_blocks_[shard]; }

  // `sample` is below samples(). Sends nothing.
  SamplePlace locate(std::uint64_t sample) const;
  // One fetch of some tens of KiB. `block` is one that the table has.
  Result<SampleBlock> block(const RequestContext& context, std::uint32_t block) const;

 private:
  SampleIndex(SampleIndexTable table, SampleIndexFetch fetch);

  const SampleIndexTable table_;
  const SampleIndexFetch fetch_;
  // Sums over what comes before each, and one more at the end.
  std::vector<std::uint64_t> shard_samples_;
  std::vector<std::uint32_t> shard_blocks_;
  std::vector<std::uint64_t> block_samples_;
  std::vector<std::uint64_t> block_offsets_;
};

}  // namespace millrace
