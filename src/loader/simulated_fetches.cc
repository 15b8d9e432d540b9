#include "loader/simulated_fetches.h"

#include <algorithm>
#include <cassert>
#include <set>
#include <utility>

#include "cache/unit.h"
#include "loader/even_merge.h"

namespace millrace {

SimulatedBytes::SimulatedBytes(const std::vector<SampleStretch>& stretches) {
  for (const SampleStretch& stretch : stretches) {
    if (stretch.samples == 0) continue;
    placed_.push_back({.first_sample = samples_, .first_byte = bytes_, .stretch = stretch});
    samples_ += stretch.samples;
    bytes_ += stretch.bytes;
  }
}

ByteRange SimulatedBytes::range(std::uint64_t sample) const {
  assert(sample < samples_);
  const Placed& placed =
      *std::prev(std::ranges::upper_bound(placed_, sample, {}, &Placed::first_sample));
  const auto begin = [&](std::uint64_t number) {
    return placed.first_byte + scaled(placed.stretch.bytes, number, placed.stretch.samples);
  };
  const std::uint64_t number = sample - placed.first_sample;
  return {.offset = begin(number), .length = begin(number + 1) - begin(number)};
}

void SimulatedFetches::read(ByteRange range) {
  if (range.empty()) return;
  for (std::uint64_t unit = range.offset / kUnitBytes; unit <= (range.end() - 1) / kUnitBytes;
       ++unit) {
    units_.push_back(static_cast<std::uint32_t>(unit));
  }
}

std::uint32_t SimulatedFetches::units_end() const {
  return units_.empty() ? 0 : *std::ranges::max_element(units_) + 1;
}

std::vector<std::uint32_t> SimulatedFetches::next_reads() const {
  const auto none = static_cast<std::uint32_t>(units_.size());
  std::vector<std::uint32_t> next(units_.size());
  std::vector<std::uint32_t> seen(units_end(), none);
  for (std::uint32_t n = none; n-- > 0;)
    next[n] = std::exchange(seen[units_[n]], n);
  return next;
}

std::uint64_t SimulatedFetches::needed_bytes() const {
  std::vector<bool> seen(units_end());
  std::uint64_t units = 0;
  for (const std::uint32_t unit : units_) {
    if (!seen[unit]) ++units;
    seen[unit] = true;
  }
  return units * kUnitBytes;
}

std::uint64_t SimulatedFetches::cache_bytes_min() const {
  const std::vector<std::uint32_t> next = next_reads();
  std::vector<bool> held(units_end());
  std::uint64_t units = 0;
  std::uint64_t most = 0;
  for (std::size_t n = 0; n < units_.size(); ++n) {
    if (!held[units_[n]]) ++units;
    most = std::max(most, units);
    held[units_[n]] = next[n] < units_.size();
    if (!held[units_[n]]) --units;
  }
  return most * kUnitBytes;
}

std::uint64_t SimulatedFetches::fetched_bytes(std::uint64_t cache_bytes) const {
  if (cache_bytes == 0 || cache_bytes >= cache_bytes_min()) return needed_bytes();
  const std::uint64_t units_max = std::max<std::uint64_t>(1, cache_bytes / kUnitBytes);
  const std::vector<std::uint32_t> next = next_reads();
  // What is held, by its next read. A read is of one unit, so this names each once.
  std::set<std::uint32_t> held;
  std::uint64_t fetched = 0;
  for (std::uint32_t n = 0; n < units_.size(); ++n) {
    if (held.erase(n) == 0) ++fetched;
    if (next[n] == units_.size()) continue;
    held.insert(next[n]);
    if (held.size() > units_max) held.erase(std::prev(held.end()));
  }
  return fetched * kUnitBytes;
}

}  // namespace millrace
