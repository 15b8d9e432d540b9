#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace millrace {

// Consecutive samples of about one size: those of a shard, or a stretch of files.
struct SampleStretch {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  bool operator==(const SampleStretch&) const = default;
};

inline constexpr std::uint64_t kOrderBlockBytes = 4 * kMiB;
// Blocks come in rows of so many. A number with many divisors: windowed_order.h says why.
inline constexpr std::uint64_t kOrderLanes = 48;
// A small version has smaller blocks rather than fewer rows, or there would be little to shuffle.
inline constexpr std::uint64_t kOrderRowsMin = 20;

// Cuts the samples of a version into blocks of consecutive samples, which the order moves as one,
// so that what is fetched together is used together.
//
// 1. Each sample is in one block, or is one of the few that fill no row: fewer than 48 for each
//    class of sizes.
// 2. Samples of about one size (a factor of two) make a class, wherever they are. Its blocks have
//    `block_bytes` or somewhat more, in at most two sizes that differ by one sample, and both are
//    spread over all of the class: sums over blocks need no table.
// 3. Memory is by runs of samples of about one size, of which a version mostly has one, and not by
//    blocks or samples.
//
// Immutable, safe from any thread.
class BlockLayout {
 public:
  // The blocks of one size, in one class.
  struct Blocks {
    std::size_t size_class = 0;
    std::uint64_t rows = 0;  // Of kOrderLanes blocks each.
    std::uint64_t block_samples = 0;
    bool larger = false;  // Of the two sizes.
  };

  // A stretch goes on with the class of the one before while its samples are no more than twice as
  // large or half as large: else small differences would make many runs. `block_bytes` is at
  // least 1.
  explicit BlockLayout(std::span<const SampleStretch> stretches,
                       std::uint64_t block_bytes = kOrderBlockBytes);

  std::uint64_t samples() const { return samples_; }
  const std::vector<Blocks>& blocks() const { return blocks_; }
  // Where a block begins, as a place of its class; counted among those of its size.
  std::uint64_t first_place(const Blocks& blocks, std::uint64_t block) const;
  // The sample that is at this place of its class.
  std::uint64_t sample(std::size_t size_class, std::uint64_t place) const;
  // Samples that are in no block; `number` is below loose_samples().
  std::uint64_t loose_samples() const { return loose_samples_; }
  std::uint64_t loose_sample(std::uint64_t number) const;

 private:
  // Consecutive samples, at consecutive places of their class.
  struct Run {
    std::uint64_t first_place = 0;
    std::uint64_t first_sample = 0;
  };
  struct SizeClass {
    std::uint64_t samples = 0;
    std::uint64_t bytes = 0;
    std::uint64_t loose = 0;  // The last of them.
    std::uint64_t blocks = 0;
    std::uint64_t larger_blocks = 0;  // Have one sample more.
    std::vector<Run> runs = {};
  };

  void add_stretches(std::span<const SampleStretch> stretches);
  void cut(std::size_t size_class, std::uint64_t block_bytes);

  std::uint64_t samples_ = 0;
  std::uint64_t loose_samples_ = 0;
  std::vector<SizeClass> classes_;  // By the logarithm of their samples' size; most are empty.
  std::vector<Blocks> blocks_;
};

}  // namespace millrace
