#pragma once

#include <cstdint>

namespace millrace {

__extension__ using WideProduct = unsigned __int128;

// a * b / c, rounded down, for any a and b whose result fits.
inline std::uint64_t scaled(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  if ((a | b) >> 32 == 0) return a * b / c;  // Several times faster.
  return static_cast<std::uint64_t>(static_cast<WideProduct>(a) * b / c);
}

// Merges sequences so that each is spread evenly over the result, and tells without a table which
// sequence a place belongs to. Asked for one sequence after the other, each against all that
// follow:
//
//   EvenMerge merge(place, total);
//   for (n = 0; !merge.takes(lengths[n]); ++n) {}
//   ... sequence n, element merge.index()
//
// The lengths add up to the total; `place` is below it.
class EvenMerge {
 public:
  EvenMerge(std::uint64_t place, std::uint64_t total) : place_(place), total_(total) {}

  // Whether the place is one of the next sequence.
  bool takes(std::uint64_t length) {
    const std::uint64_t before = scaled(place_, length, total_);
    if (scaled(place_ + 1, length, total_) > before) {
      place_ = before;
      return true;
    }
    place_ -= before;
    total_ -= length;
    return false;
  }
  // In the sequence that took the place.
  std::uint64_t index() const { return place_; }

 private:
  std::uint64_t place_;
  std::uint64_t total_;
};

}  // namespace millrace
