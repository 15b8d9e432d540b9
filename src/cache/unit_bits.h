#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "cache/unit.h"

namespace millrace {

// One bit per unit. Reading is lock-free; writers are serialised by their owner's lock.
class UnitBits {
 public:
  explicit UnitBits(std::uint32_t units)
      : words_(std::make_unique<std::atomic<std::uint64_t>[]>((units + 63) / 64)) {}

  bool test(std::uint32_t unit) const {
    return (words_[unit / 64].load(std::memory_order_acquire) >> (unit % 64) & 1) != 0;
  }
  bool all(UnitRange units) const {
    for (std::uint32_t word = units.first / 64; word * 64 < units.end(); ++word) {
      const std::uint64_t mask = mask_of(units, word);
      if ((words_[word].load(std::memory_order_acquire) & mask) != mask) return false;
    }
    return true;
  }
  // Return how many bits changed.
  std::uint32_t set(UnitRange units) {
    return change(units, [](std::uint64_t word, std::uint64_t mask) { return word | mask; });
  }
  std::uint32_t clear(UnitRange units) {
    return change(units, [](std::uint64_t word, std::uint64_t mask) { return word & ~mask; });
  }

 private:
  static std::uint64_t mask_of(UnitRange units, std::uint32_t word) {
    const std::uint32_t begin = units.first > word * 64 ? units.first - word * 64 : 0;
    const std::uint32_t end = std::min<std::uint32_t>(units.end() - word * 64, 64);
    const std::uint64_t upto_end = end == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
    return upto_end & ~((std::uint64_t{1} << begin) - 1);
  }
  template <class Change>
  std::uint32_t change(UnitRange units, Change changed) {
    std::uint32_t count = 0;
    for (std::uint32_t word = units.first / 64; word * 64 < units.end(); ++word) {
      const std::uint64_t before = words_[word].load(std::memory_order_relaxed);
      const std::uint64_t after = changed(before, mask_of(units, word));
      count += static_cast<std::uint32_t>(__builtin_popcountll(before ^ after));
      words_[word].store(after, std::memory_order_release);
    }
    return count;
  }

  std::unique_ptr<std::atomic<std::uint64_t>[]> words_;
};

}  // namespace millrace
