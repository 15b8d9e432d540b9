#include "loader/windowed_order.h"

#include <algorithm>
#include <cassert>

#include "loader/even_merge.h"
#include "loader/keyed_permutation.h"

namespace millrace {

namespace {

// What the keys that are made of one are for.
enum class KeyUse : std::uint64_t { kBlocks = 1, kRows, kSamples, kLoose };

std::uint64_t key_for(std::uint64_t key, KeyUse use) {
  return subkey(key, static_cast<std::uint64_t>(use));
}

}  // namespace

WindowedOrder::WindowedOrder(std::shared_ptr<const BlockLayout> layout, std::uint64_t key,
                             std::uint64_t rows)
    : layout_(std::move(layout)), key_(key) {
  assert(layout_->samples() > 0 && rows >= kWindowRowsMin && rows <= kWindowRowsMax);
  std::uint64_t rows_of_all = 0;
  for (const BlockLayout::Blocks& blocks : layout_->blocks())
    rows_of_all += blocks.rows;
  for (const BlockLayout::Blocks& blocks : layout_->blocks()) {
    Stream stream{.blocks = blocks, .key = subkey(key_, streams_.size())};
    stream.window_rows = std::max<std::uint64_t>(1, scaled(rows, blocks.rows, rows_of_all));
    stream.windows = std::max<std::uint64_t>(1, blocks.rows / stream.window_rows);
    stream.lane_samples = blocks.rows * blocks.block_samples;
    lane_samples_ += stream.lane_samples;
    streams_.push_back(stream);
  }
}

const WindowedOrder::Stream& WindowedOrder::stream_at(std::uint64_t position,
                                                      std::uint64_t& turn) const {
  EvenMerge merge(position / kOrderLanes, lane_samples_);
  std::size_t n = 0;
  while (!merge.takes(streams_[n].lane_samples))
    ++n;
  turn = merge.index();
  return streams_[n];
}

std::uint64_t WindowedOrder::at(std::uint64_t position) const {
  assert(position < layout_->samples());
  if (is_loose(position)) {
    const KeyedPermutation loose(key_for(key_, KeyUse::kLoose), layout_->loose_samples());
    return layout_->loose_sample(loose.at(position - lane_samples_ * kOrderLanes));
  }
  std::uint64_t turn = 0;
  const Stream& stream = stream_at(position, turn);
  const Spot found = spot(*layout_, stream, position % kOrderLanes, turn);
  return layout_->sample(stream.blocks.size_class, found.first_place + found.sample);
}

OrderSurroundings WindowedOrder::surroundings(std::uint64_t position) const {
  if (is_loose(position)) return {.first = at(position), .last = at(position)};
  std::uint64_t turn = 0;
  const Stream& stream = stream_at(position, turn);
  const Spot found = spot(*layout_, stream, position % kOrderLanes, turn);
  const auto sample = [&](std::uint64_t of_block) {
    return layout_->sample(stream.blocks.size_class, found.first_place + of_block);
  };
  OrderSurroundings around{.first = sample(0), .last = sample(stream.blocks.block_samples - 1)};
  // A block that goes on elsewhere has others' samples in between.
  if (around.last - around.first >= stream.blocks.block_samples) {
    around.first = around.last = sample(found.sample);
  }
  around.age_max = (scaled(found.turn + 1, lane_samples_, stream.lane_samples) + 2) * kOrderLanes;
  return around;
}

WindowedOrder::Spot WindowedOrder::spot(const BlockLayout& layout, const Stream& stream,
                                        std::uint64_t lane, std::uint64_t turn) {
  const BlockLayout::Blocks& blocks = stream.blocks;
  const std::uint64_t window =
      std::min(turn / (stream.window_rows * blocks.block_samples), stream.windows - 1);
  const std::uint64_t first_row = window * stream.window_rows;
  const std::uint64_t rows =
      window + 1 == stream.windows ? blocks.rows - first_row : stream.window_rows;
  turn -= first_row * blocks.block_samples;
  // Each turn of a window takes all its rows once, in an order of its own.
  const std::uint64_t round = turn / rows;
  const std::uint64_t rows_key =
      subkey(key_for(stream.key, KeyUse::kRows), window * kOrderLanes + lane);
  const KeyedPermutation shuffled_rows(subkey(rows_key, round), rows);
  const std::uint64_t row = first_row + shuffled_rows.at(turn % rows);

  const KeyedPermutation shuffled_blocks(key_for(stream.key, KeyUse::kBlocks),
                                         blocks.rows * kOrderLanes);
  const std::uint64_t block = shuffled_blocks.at(row * kOrderLanes + lane);
  const KeyedPermutation shuffled_samples(subkey(key_for(stream.key, KeyUse::kSamples), block),
                                          blocks.block_samples);
  return {.first_place = layout.first_place(blocks, block),
          .sample = shuffled_samples.at(round),
          .turn = turn};
}

}  // namespace millrace
