#include "bench/garbage_collection.h"

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

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

// User and system time of a process so far, from /proc/PID/stat: the 14th and 15th word, counted
// after the name, which may hold spaces.
double process_cpu_s(const std::string& pid_file) {
  long pid = 0;
  std::ifstream(pid_file) >> pid;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(stat, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream words(line.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i)
    words >> skipped;
  double user = 0;
  double system = 0;
  words >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double server_cpu_s(const std::string& directory) {
  return process_cpu_s(directory + "/rgw.pid") + process_cpu_s(directory + "/osd.pid");
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
