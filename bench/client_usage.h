#pragma once

#include <chrono>

#include "bench/run_figures.h"

namespace millrace::bench {

// CPU time, wall time and peak memory of this process from construction on. The servers and the
// peers are other processes, so all of it is our client's.
class ClientUsage {
 public:
  ClientUsage();

  RunFigures figures(double amount) const;

 private:
  double cpu_s_before_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace millrace::bench
