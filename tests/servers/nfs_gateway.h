#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/servers/child_process.h"

namespace millrace::testing {

// `millrace serve --nfs` as a process of its own, with a home in a directory of the caller's. It
// keeps its port from one start to the next, as mounts need.
//
// Lifecycle: start() and kill() or stop() in turn; destruction kills. Failures throw
// std::runtime_error with what the program said. One caller at a time.
class NfsGateway {
 public:
  // `settings` are more arguments of serve.
  NfsGateway(std::string program, std::string directory, std::vector<std::string> settings = {});
  ~NfsGateway();

  // Returns when it serves.
  void start();
  // SIGKILL; returns when it is gone.
  void kill();
  // As a user ends it.
  void stop();

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return process_ ? process_->pid() : -1; }
  // The program with these arguments and the same home. It must succeed. Returns its output.
  std::string millrace(const std::vector<std::string>& arguments);
  // The sum of a metric's series whose labels hold all of `labels`: metric("x", {R"(a="b")"}).
  double metric(const std::string& name, const std::vector<std::string>& labels = {});
  std::string log() const;

 private:
  ChildOptions child_options(const std::string& output) const;

  const std::string program_;
  const std::string directory_;
  const std::vector<std::string> settings_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace millrace::testing
