#include "bench/garbage_collection.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

#include "bench/process_usage.h"

namespace millrace::bench {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// tools/ceph lets the collector take objects 1 s after their deletion and runs it every 2 s.
constexpr milliseconds kCollectorTurn{3000};
constexpr milliseconds kRestTimeMax{15000};
constexpr milliseconds kStep{250};
// Of one core. At rest the daemons' timers take about 1 %, a collection much more than 30 %.
constexpr double kRestingLoad = 0.15;

double cpu_s_of(const std::string& pid_file) {
  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  return process_cpu_s(pid);
}

double server_cpu_s(const std::string& directory) {
  return cpu_s_of(directory + "/rgw.pid") + cpu_s_of(directory + "/osd.pid");
}

}  // namespace

void wait_for_garbage_collection(const millrace::testing::CephServer& ceph) {
  const auto start = steady_clock::now();
  double before = server_cpu_s(ceph.directory());
  while (steady_clock::now() - start < kRestTimeMax) {
    std::this_thread::sleep_for(kStep);
    const double now = server_cpu_s(ceph.directory());
    const double load = (now - before) / std::chrono::duration<double>(kStep).count();
    before = now;
    if (steady_clock::now() - start >= kCollectorTurn && load < kRestingLoad) return;
  }
}

}  // namespace millrace::bench
