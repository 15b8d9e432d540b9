#pragma once

#include <cstdint>

namespace millrace {

// A sample that will be read.
struct PlannedSample {
  static constexpr std::uint64_t kNoBound = UINT64_MAX;

  std::uint64_t source = 0;
  std::uint64_t sample = 0;
  // Samples that this node reads at about the same time, from the first to the last, so that they
  // may be fetched with it: those of its block. What lies behind these bounds is read on another
  // node, and must not be fetched on both. kNoBound: there is no other node.
  std::uint64_t first = 0;
  std::uint64_t last = kNoBound;
  bool operator==(const PlannedSample&) const = default;
};

}  // namespace millrace
