#include "loader/block_layout.h"

#include <algorithm>
#include <bit>
#include <cassert>

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

// n samples in rows x 120 blocks, of which those of the first rows have one sample more.
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
  const Blocks larger{.size_class = size_class,
                      .first = 0,
                      .rows = larger_rows,
                      .block_samples = lane_samples / rows + 1};
  const Blocks smaller{.size_class = size_class,
                       .first = larger.rows * kOrderLanes * larger.block_samples,
                       .rows = rows - larger_rows,
                       .block_samples = lane_samples / rows};
  if (larger.rows > 0) blocks_.push_back(larger);
  blocks_.push_back(smaller);
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
