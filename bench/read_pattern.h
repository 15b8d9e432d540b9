#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/run_figures.h"

namespace millrace::bench {

// How a large file is read by four threads.
struct ReadPattern {
  std::string name;
  std::uint64_t read_bytes = 0;
  bool sequential = false;
  double goal = 0;              // The ratio to reach.
  bool count_requests = false;  // Else bytes.
};

// Reads until the time is over. Each thread calls make_reader() once, and what that returns with
// each place to read at.
using PlaceReader = std::function<void(std::uint64_t)>;
RunFigures run_readers(const ReadPattern& pattern, std::uint64_t file_bytes, double seconds,
                       const std::function<PlaceReader()>& make_reader);

}  // namespace millrace::bench
