#pragma once

#include <cstdint>
#include <vector>

#include "loader/block_layout.h"

namespace millrace {

// Where samples lie, as far as the averages of stretches tell: one behind the other.
class SimulatedBytes {
 public:
  explicit SimulatedBytes(const std::vector<SampleStretch>& stretches);

  std::uint64_t samples() const { return samples_; }
  std::uint64_t bytes() const { return bytes_; }
  ByteRange range(std::uint64_t sample) const;

 private:
  struct Placed {
    std::uint64_t first_sample;
    std::uint64_t first_byte;
    SampleStretch stretch;
  };
  std::vector<Placed> placed_;
  std::uint64_t samples_ = 0;
  std::uint64_t bytes_ = 0;
};

// A cache of 64 KiB units that knows the future: it evicts what is used last. Counts what it
// fetches for a sequence of reads. Needs one thread at a time.
class SimulatedFetches {
 public:
  void read(ByteRange range);

  std::uint64_t needed_bytes() const;
  // The most that is read, and read again, around any moment.
  std::uint64_t cache_bytes_min() const;
  // With a cache of that size; 0: as large as it takes.
  std::uint64_t fetched_bytes(std::uint64_t cache_bytes) const;

 private:
  // For each read its next one of the same unit; their number when there is none.
  std::vector<std::uint32_t> next_reads() const;
  std::uint32_t units_end() const;

  std::vector<std::uint32_t> units_;
};

}  // namespace millrace
