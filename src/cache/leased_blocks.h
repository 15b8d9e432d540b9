#pragma once

#include <cstdint>
#include <vector>

#include "cache/lease.h"
#include "cache/object_version.h"

namespace millrace {

// Consecutive blocks of one object, which take as much of the disk each.
struct LeasedBlocks {
  ObjectDigest digest;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t block_bytes = 0;

  std::uint32_t end() const { return first + count; }
  std::uint64_t bytes() const { return std::uint64_t{count} * block_bytes; }
  bool operator==(const LeasedBlocks&) const = default;
};

// The blocks that a range touches, from the first to the last. A promise is on all of a block; of
// what is only held, the units that the range touches count.
std::vector<LeasedBlocks> blocks_of(const LeasedRange& leased, LeaseKind kind);

// Sorts them by object and place, so that each block is there once.
void merge_blocks(std::vector<LeasedBlocks>& blocks);
// Whether merged ones have a block.
bool contains_block(const std::vector<LeasedBlocks>& merged, const ObjectDigest& digest,
                    std::uint32_t block);

}  // namespace millrace
