#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/eviction_block.h"

namespace millrace {

// Remembers which blocks left the small queue lately, by a fingerprint of 32 bits each: a block
// that comes back soon was on trial for too short a time. Two blocks with one fingerprint are
// mistaken for each other, one time in thousands, and then a block gets a better place than it
// deserves.
//
// Invariants:
//  1. A ghost is in the bucket that its fingerprint names, and `number` tells how many came before.
//  2. A ghost older than the last `capacity` ones is no ghost any more; nobody sweeps it away, the
//     oldest of a full bucket is overwritten.
class GhostQueue {
 public:
  // `capacity`: how many of the last ghosts count, this time.
  void add(BlockId block, std::size_t capacity);
  // Whether it is a ghost; then it is one no longer.
  bool take(BlockId block, std::size_t capacity);

  std::size_t memory_bytes() const { return ghosts_.capacity() * sizeof(Ghost); }

 private:
  struct Ghost {
    std::uint32_t fingerprint = 0;
    std::uint32_t number = 0;  // 0: none.
  };
  static constexpr std::size_t kBucketGhosts = 8;  // A cache line.

  static std::uint32_t fingerprint(BlockId block) {
    return static_cast<std::uint32_t>(block_hash(block));
  }
  Ghost* bucket(std::uint32_t fingerprint) {
    return &ghosts_[(fingerprint & (ghosts_.size() / kBucketGhosts - 1)) * kBucketGhosts];
  }
  // How many came after it.
  std::uint32_t age(const Ghost& ghost) const { return last_number_ - ghost.number; }
  void place(const Ghost& ghost);
  void make_room(std::size_t capacity);

  std::vector<Ghost> ghosts_;
  std::uint32_t last_number_ = 0;
};

}  // namespace millrace
