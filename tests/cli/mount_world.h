#pragma once

#include <sys/mount.h>

#include <chrono>
#include <ranges>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "frontends/fuse/mount_table.h"
#include "tests/cli/millrace_process.h"

namespace millrace::cli {

// A published tree in the embedded store, and a directory to mount on. Ends the daemon, the keeper
// and the mount at the end, whatever the test left.
class MountTest : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    if (HasFatalFailure()) return;
    variables_["PATH"] += ":/usr/sbin:/sbin";
    succeed(
        "mkdir -p tree/d/e mnt; head -c 5000000 /dev/urandom > tree/large.bin;"
        "for n in $(seq 60); do head -c $((n * 700)) /dev/urandom > tree/d/$n.jpg; done;"
        "echo hello > tree/d/e/hello.txt; ln -s ../large.bin tree/d/link; : > tree/empty;"
        "(cd tree && find . -type f | sort | xargs sha256sum) > sums;"
        "millrace publish tree a@v1");
  }
  void TearDown() override {
    if (!directory_.empty()) {
      millrace({"stop"});
      for (const ListedMount& mount : std::views::reverse(listed_mounts())) {
        if (mount.directory.starts_with(path(""))) ::umount2(mount.directory.c_str(), MNT_DETACH);
      }
    }
    MillraceTest::TearDown();
  }

  void use_s3(const std::string& endpoint) {
    be_known_to_s3();
    variables_["MILLRACE_STORE"] = "s3://test-bucket/pre?endpoint=" + endpoint;
  }

  Outcome succeed(const std::string& script) {
    Outcome outcome = bash("set -euo pipefail; cd $DIR; " + script);
    EXPECT_EQ(outcome.exit_code, 0) << script << ": " << outcome.out << outcome.err;
    return outcome;
  }
  // 0 while there is none.
  int daemon_pid() {
    const Outcome status = millrace({"status", "--json"});
    return status.exit_code == 0 ? status.json().value("pid", 0) : 0;
  }
  // How many the daemon says that it has; -1 when it says nothing about them.
  int mounts() {
    const auto status = succeed("millrace --json status").json();
    for (const auto& front_end : status["front_ends"]) {
      if (front_end["name"] == "fuse") return front_end["mounts"];
    }
    return -1;
  }
  // Of this test's daemon.
  std::vector<int> keepers() {
    std::vector<int> found;
    std::istringstream pids(bash("pgrep -f '^millrace keeper --socket '$DIR").out);
    for (int pid = 0; pids >> pid;)
      found.push_back(pid);
    return found;
  }
  bool is_mounted() { return bash("mountpoint -q $DIR/mnt").exit_code == 0; }
  // False when it does not become true in time.
  template <class Condition>
  static bool becomes(Condition condition,
                      std::chrono::seconds wait_max = std::chrono::seconds(60)) {
    const auto deadline = std::chrono::steady_clock::now() + wait_max;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return true;
  }
};

}  // namespace millrace::cli
