#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cache/eviction_block.h"

namespace millrace {

// One future read, as a job announces it.
struct PlannedBlock {
  BlockId block;
  std::uint32_t bytes = 0;

  bool operator==(const PlannedBlock&) const = default;
};

// Reads in the order in which a job will make them, an epoch say, with an index from a block to its
// next read. A plan (cache/read_plan.h) is made of stretches.
//
// Construction is the costly part (about 0.1 s per million reads) and needs no lock; a finished
// stretch moves into a plan at once. Movable. Not synchronised.
//
// Invariants:
//  1. Every block of `reads_` has exactly one slot in `heads_`, which names one of its reads.
//  2. A slot without kConsumed names the block's first read that is not consumed; one with it names
//     any read of the block, and all of them are consumed.
//  3. next_[i] is the next read of the same block after i, or kNone.
//  4. bytes_before_[k] is the sum of the bytes of the reads before k * kSumReads.
class ReadPlanStretch {
 public:
  // Read numbers share 32 bits with a mark.
  static constexpr std::size_t kReadsMax = (std::size_t{1} << 31) - 1;

  // At most kReadsMax reads, which the caller checks.
  explicit ReadPlanStretch(std::vector<PlannedBlock> reads);

  std::size_t size() const { return reads_.size(); }
  const PlannedBlock& read(std::size_t index) const { return reads_[index]; }
  // The bytes of all reads before this one; `index` may be size().
  std::uint64_t bytes_before(std::size_t index) const;

  // The first read of the block that is not consumed.
  std::optional<std::uint32_t> next_read(BlockId block) const;
  // The read of the same block that follows this one.
  std::optional<std::uint32_t> read_after(std::size_t index) const;
  // Marks a read as done. True when it was the block's next one, so that next_read() changed. Reads
  // are consumed in order.
  bool consume(std::size_t index);

  std::uint64_t memory_bytes() const { return memory_bytes(reads_.size()); }
  // What a stretch of so many reads takes: at most 24 bytes per read and a little.
  static std::uint64_t memory_bytes(std::size_t reads);

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::uint32_t kConsumed = std::uint32_t{1} << 31;
  static constexpr std::size_t kSumReads = 32;

  static std::size_t head_count(std::size_t reads);
  std::size_t first_slot(BlockId block) const;
  std::size_t slot_of(BlockId block, std::size_t from) const;
  void index_blocks();
  void sum_bytes();

  std::vector<PlannedBlock> reads_;
  std::vector<std::uint32_t> next_;
  std::vector<std::uint32_t> heads_;
  std::vector<std::uint64_t> bytes_before_;
};

}  // namespace millrace
