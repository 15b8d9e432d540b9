#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/servers/child_process.h"

namespace millrace::bench {

// A fault proxy in a process of its own, so that what it takes is not counted as ours.
class ProxyProcess {
 public:
  // `arguments` beside --upstream; fault_proxy --help lists them. Throws std::runtime_error when it
  // does not start.
  ProxyProcess(const std::string& upstream_endpoint, const std::vector<std::string>& arguments,
               const std::string& scratch);

  const std::string& endpoint() const { return endpoint_; }

 private:
  std::unique_ptr<millrace::testing::ChildProcess> process_;
  std::string endpoint_;
};

}  // namespace millrace::bench
