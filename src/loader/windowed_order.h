#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "loader/block_layout.h"

namespace millrace {

// Rows of a window: 20 x 48 blocks of 4 MiB, some 4 GiB.
inline constexpr std::uint64_t kWindowRows = 20;
// The least that is still a shuffle: 288 blocks.
inline constexpr std::uint64_t kWindowRowsMin = 6;
inline constexpr std::uint64_t kWindowRowsMax = 1 << 20;

// What is used at about the time of a sample, beside it.
struct OrderSurroundings {
  // Samples of one block, which who takes this one takes too: where ranks keep to their lanes.
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  // The first of them stands at most so many positions before this one.
  std::uint64_t age_max = 0;
};

// The samples of a version in an order that is nearly as good as a shuffle of all, while at any
// time only the blocks of one window are in use: a cache that holds two windows fetches each block
// once.
//
// Blocks are shuffled and make rows, rows make windows. Inside a window each position takes a
// sample of another block than its neighbours: one of each block before any block gives its second.
// Which row a lane takes next, and which sample of the block, is chosen anew each time.
//
// 1. at() takes each sample once. It is a function of layout, key and rows.
// 2. Position p uses a block of lane p mod 48, and no block is in two lanes. So ranks that take
//    every n-th position, for an n that divides 48, share no block.
// 3. Blocks of different sizes have windows of their own, whose rows add up to about `rows`. They
//    are spread evenly over the epoch.
// 4. The samples that are in no block come last.
//
// Nothing is stored for samples or blocks: 10^10 samples take the same few hundred bytes, and a
// look-up the same time. Immutable, safe from any thread.
class WindowedOrder {
 public:
  // Part of a state, as KeyedPermutation's.
  static constexpr unsigned kAlgorithm = 1;

  // `layout` has samples; `rows` is kWindowRowsMin to kWindowRowsMax.
  WindowedOrder(std::shared_ptr<const BlockLayout> layout, std::uint64_t key, std::uint64_t rows);

  std::uint64_t at(std::uint64_t position) const;
  OrderSurroundings surroundings(std::uint64_t position) const;

 private:
  // Blocks of one size, and how they are taken.
  struct Stream {
    BlockLayout::Blocks blocks;
    std::uint64_t window_rows = 0;
    std::uint64_t windows = 0;  // The last one has the rows that are left, too.
    std::uint64_t lane_samples = 0;
    std::uint64_t key = 0;
  };

  // A sample of a block.
  struct Spot {
    std::uint64_t first_place = 0;  // Of the block.
    std::uint64_t sample = 0;       // In the block.
    std::uint64_t turn = 0;         // Of its lane, from the beginning of the window on.
  };
  // Of what stands in blocks: in which stream, and which turn of a lane it is there.
  const Stream& stream_at(std::uint64_t position, std::uint64_t& turn) const;
  static Spot spot(const BlockLayout& layout, const Stream& stream, std::uint64_t lane,
                   std::uint64_t turn);
  bool is_loose(std::uint64_t position) const { return position >= lane_samples_ * kOrderLanes; }

  const std::shared_ptr<const BlockLayout> layout_;
  const std::uint64_t key_;
  std::vector<Stream> streams_;
  std::uint64_t lane_samples_ = 0;  // Of all streams.
};

}  // namespace millrace
