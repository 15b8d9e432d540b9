#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace millrace {

// A block of a cached object. `object` is a dense number that the cache gives out and reuses.
struct BlockId {
  std::uint32_t object = 0;
  std::uint32_t block = 0;

  bool operator==(const BlockId&) const = default;
};

// Spreads neighbouring blocks over all 64 bits: tables index by the upper ones and ghosts keep the
// lower ones.
inline std::uint64_t block_hash(BlockId block) {
  std::uint64_t mixed = (std::uint64_t{block.object} << 32) | block.block;
  mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93U;
  mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93U;
  return mixed ^ (mixed >> 32);
}

}  // namespace millrace

template <>
struct std::hash<millrace::BlockId> {
  std::size_t operator()(const millrace::BlockId& block) const noexcept {
    return millrace::block_hash(block);
  }
};
