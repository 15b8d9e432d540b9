#include "bench/process_usage.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace millrace::bench {

double process_cpu_s(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  // The name in brackets may hold blanks; user and system time are the 12th and 13th word after it.
  std::istringstream words(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int n = 0; n < 11; ++n)
    words >> skipped;
  double user = 0;
  double system = 0;
  if (!(words >> user >> system)) throw std::runtime_error("a process is gone");
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double process_rss_mib_max(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  throw std::runtime_error("a process is gone");
}

}  // namespace millrace::bench
