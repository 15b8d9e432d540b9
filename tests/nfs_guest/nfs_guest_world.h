#pragma once

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/servers/child_process.h"
#include "tests/servers/nfs_gateway.h"
#include "tests/servers/nfs_guest.h"
#include "tests/servers/torture.h"

namespace millrace {

// A gateway with the dataset a@v1, and Linux in a machine of its own that mounts it. The machine is
// booted once for all tests, and used again.
class NfsGuestTest : public ::testing::Test {
 protected:
  using CommandResult = millrace::testing::CommandResult;

  void SetUp() override {
    if (!millrace::testing::NfsGuest::available()) GTEST_SKIP() << "there is no kernel for a guest";
    const char* const program = std::getenv("MILLRACE_BIN");
    ASSERT_NE(program, nullptr) << "run this by ctest, or set MILLRACE_BIN";
    if (!guest_) guest_ = std::make_unique<millrace::testing::NfsGuest>();
    on_host(
        "mkdir -p tree/d/e; head -c 5000000 /dev/urandom > tree/large.bin;"
        "for n in $(seq 60); do head -c $((n * 700)) /dev/urandom > tree/d/$n.jpg; done;"
        "echo hello > tree/d/e/hello.txt; ln -s ../large.bin tree/d/link; : > tree/empty;"
        "cp $(command -v busybox || echo $BUSYBOX) tree/busybox; chmod 755 tree/busybox;"
        "(cd tree && find . -type f | sort | xargs sha256sum) > sums");
    gateway_ =
        std::make_unique<millrace::testing::NfsGateway>(program, directory_.path() + "/home");
    gateway_->millrace({"publish", directory_.path() + "/tree", "a@v1"});
    gateway_->millrace({"alias", "set", "a@current", "v1"});
    gateway_->start();
  }
  void TearDown() override {
    if (guest_ && gateway_) guest_->run("umount -f /mnt 2>/dev/null; umount -l /mnt 2>/dev/null");
    if (HasFailure() && gateway_) ADD_FAILURE() << gateway_->log() << guest_->console();
    gateway_.reset();
  }

  // In the test's directory. Must succeed.
  std::string on_host(const std::string& script) {
    const CommandResult result = millrace::testing::run_command(
        {"/bin/bash", "-c", "set -euo pipefail; cd " + directory_.path() + "; " + script},
        {.output_file = "",
         .environment = {{"BUSYBOX", std::string(std::getenv("MILLRACE_SOURCE_DIR")) +
                                         "/build/nfs_guest/bin/busybox"}}});
    EXPECT_EQ(result.status, 0) << script << ": " << result.output;
    return result.output;
  }
  // In the guest. Must succeed.
  std::string on_guest(const std::string& script) {
    const CommandResult result = guest_->run("set -e; " + script);
    EXPECT_EQ(result.status, 0) << script << ": " << result.output;
    return result.output;
  }
  void mount(const std::string& options, const std::string& path = "/datasets") {
    on_guest(
        fmt::format("mount -t nfs4 -o addr=10.0.2.2,clientaddr=10.0.2.15,port={},{} "
                    "10.0.2.2:{} /mnt",
                    gateway_->port(), options, path));
  }
  void unmount() { on_guest("umount /mnt"); }
  // The sums of all files below a directory of the guest, in the form of the host's.
  std::string sums(const std::string& directory) {
    return on_guest("cd " + directory + "; find . -type f | sort | xargs sha256sum");
  }
  // False when it does not become true in time.
  template <class Condition>
  static bool becomes(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(3);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
  double requests() { return gateway_->metric("millrace_nfs_requests_total"); }
  double operations(const std::string& operation) {
    return gateway_->metric("millrace_nfs_operations_total",
                            {fmt::format("operation=\"{}\"", operation)});
  }

  static inline std::unique_ptr<millrace::testing::NfsGuest> guest_;
  const TortureDirectory directory_;
  std::unique_ptr<millrace::testing::NfsGateway> gateway_;
};

}  // namespace millrace
