#include "bench/client_usage.h"

#include <sys/resource.h>

#include <fstream>
#include <string>

namespace millrace::bench {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double own_cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
}

// Where the kernel refuses it, the peak is that of the whole process: more, never less.
void forget_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

double peak_memory_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  return 0;
}

}  // namespace

ClientUsage::ClientUsage() {
  forget_peak_memory();
  cpu_s_before_ = own_cpu_s();
  start_ = std::chrono::steady_clock::now();
}

RunFigures ClientUsage::figures(double amount) const {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  return {.amount = amount,
          .seconds = elapsed.count(),
          .cpu_s = own_cpu_s() - cpu_s_before_,
          .rss_mib = peak_memory_mib()};
}

}  // namespace millrace::bench
