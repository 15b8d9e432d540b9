#include "loader/block_layout.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "loader/even_merge.h"

namespace millrace {

namespace {

// All samples of 1 GiB and above are alike: each is a block.
constexpr std::size_t kSizeClasses = 32;

std::size_t size_class_of(const SampleStretch& stretch) {
  const auto log2 = static_cast<std::size_t>(std::bit_width(stretch.bytes / stretch.samples));
  return std::min(log2, kSizeClasses - 1);
}

}  // namespace

BlockLayout::BlockLayout(std::span<const SampleStretch> stretches, std::uint64_t block_bytes) {
  assert(block_bytes >= 1);
  classes_.resize(kSizeClasses);
  add_stretches(stretches);
  for (std::size_t n = 0; n < classes_.size(); ++n)
    cut(n, block_bytes);
}

void BlockLayout::add_stretches(std::span<const SampleStretch> stretches) {
  std::size_t before = kSizeClasses;
  for (const SampleStretch& stretch : stretches) {
    if (stretch.samples == 0) continue;
    std::size_t size_class = size_class_of(stretch);
    const bool goes_on =
        before < kSizeClasses && size_class <= before + 1 && before <= size_class + 1;
    if (goes_on) size_class = before;
    SizeClass& found = classes_[size_class];
    if (!goes_on) {
      found.runs.push_back({.first_place = found.samples, .first_sample = samples_});
      before = size_class;
    }
    found.samples += stretch.samples;
    found.bytes += stretch.bytes;
    samples_ += stretch.samples;
  }
}

void BlockLayout::cut(std::size_t size_class, std::uint64_t block_bytes) {
  SizeClass& cut = classes_[size_class];
  cut.loose = cut.samples % kOrderLanes;
  loose_samples_ += cut.loose;
  const std::uint64_t lane_samples = cut.samples / kOrderLanes;
  if (lane_samples == 0) return;
  const std::uint64_t sample_bytes = std::max<std::uint64_t>(1, cut.bytes / cut.samples);
  const std::uint64_t wanted = (block_bytes + sample_bytes - 1) / sample_bytes;
  const std::uint64_t rows = std::max(lane_samples / wanted, std::min(kOrderRowsMin, lane_samples));
  const std::uint64_t larger_rows = lane_samples % rows;
  cut.blocks = rows * kOrderLanes;
  cut.larger_blocks = larger_rows * kOrderLanes;
  const Blocks smaller{.size_class = size_class,
                       .rows = rows - larger_rows,
                       .block_samples = lane_samples / rows,
                       .larger = false};
  if (larger_rows > 0) {
    blocks_.push_back({.size_class = size_class,
                       .rows = larger_rows,
                       .block_samples = smaller.block_samples + 1,
                       .larger = true});
  }
  blocks_.push_back(smaller);
}

// Of n blocks r are larger. They are those at which b x r / n, rounded down, grows from b to b + 1:
// as even as it can be. Turned round, the larger ones are at (i x n - 1) / r for i from 1, and the
// others at j x n / (n - r) for j from 0.
std::uint64_t BlockLayout::first_place(const Blocks& blocks, std::uint64_t block) const {
  const SizeClass& found = classes_[blocks.size_class];
  assert(block < blocks.rows * kOrderLanes);
  const std::uint64_t smaller_samples = blocks.block_samples - (blocks.larger ? 1 : 0);
  std::uint64_t number = 0;
  if (blocks.larger) {
    const WideProduct end = static_cast<WideProduct>(block + 1) * found.blocks;
    number = static_cast<std::uint64_t>((end - 1) / found.larger_blocks);
  } else {
    number = scaled(block, found.blocks, found.blocks - found.larger_blocks);
  }
  return number * smaller_samples + scaled(number, found.larger_blocks, found.blocks);
}

std::uint64_t BlockLayout::sample(std::size_t size_class, std::uint64_t place) const {
  const SizeClass& found = classes_[size_class];
  assert(place < found.samples);
  const auto after = std::ranges::upper_bound(found.runs, place, {}, &Run::first_place);
  const Run& run = *std::prev(after);
  return run.first_sample + (place - run.first_place);
}

std::uint64_t BlockLayout::loose_sample(std::uint64_t number) const {
  assert(number < loose_samples_);
  std::size_t size_class = 0;
  while (number >= classes_[size_class].loose)
    number -= classes_[size_class++].loose;
  return sample(size_class, classes_[size_class].samples - 1 - number);
}

}  // namespace millrace
