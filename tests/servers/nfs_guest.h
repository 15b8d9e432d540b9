#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "tests/servers/child_process.h"

namespace millrace::testing {

// A machine with Linux' own NFS client: Debian's kernel under qemu's software emulation, since the
// kernels of build machines often have none. It has busybox, 10.0.2.2 leads to our loopback
// address, and nothing in it outlives it.
//
// Lifecycle: the constructor boots it, which takes about 6 s, and throws std::runtime_error with
// the end of the console's output otherwise; destruction switches it off. One caller at a time.
class NfsGuest {
 public:
  // Whether tools/setup could get a kernel for it on this distribution.
  static bool available();

  NfsGuest();
  ~NfsGuest();
  NfsGuest(const NfsGuest&) = delete;
  NfsGuest& operator=(const NfsGuest&) = delete;

  // Runs a script in the guest's shell. Status and output as run_command has them; after a time-out
  // (124) the guest is of no more use. What it leaves in the background goes on.
  CommandResult run(const std::string& script,
                    std::chrono::milliseconds timeout = std::chrono::minutes(3));
  const std::string& kernel() const { return kernel_; }
  // What the guest's kernel has said so far.
  std::string console() const;

 private:
  void boot();
  // Up to the end of a line; nothing when the time is over or the guest is gone.
  std::string read_line(std::chrono::steady_clock::time_point deadline);

  std::string directory_;
  std::unique_ptr<ChildProcess> machine_;
  int line_ = -1;
  std::string received_;
  std::string kernel_;
};

}  // namespace millrace::testing
