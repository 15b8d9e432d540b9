#include "bench/proxy_process.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <thread>

namespace millrace::bench {

ProxyProcess::ProxyProcess(const std::string& upstream_endpoint,
                           const std::vector<std::string>& arguments, const std::string& scratch) {
  const auto program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "fault_proxy";
  const std::string output = scratch + "/fault_proxy.out";
  std::vector<std::string> command = {program.string(), "--upstream",
                                      upstream_endpoint.substr(std::string("http://").size())};
  command.insert(command.end(), arguments.begin(), arguments.end());
  process_ = std::make_unique<millrace::testing::ChildProcess>(
      command, millrace::testing::ChildOptions{.output_file = output, .environment = {}});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::chrono::steady_clock::now() < deadline && process_->running()) {
    std::ifstream lines(output);
    for (std::string word; lines >> word;) {
      if (word.starts_with("http://")) {
        endpoint_ = word;
        return;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  throw std::runtime_error("the fault proxy did not start; see " + output);
}

}  // namespace millrace::bench
