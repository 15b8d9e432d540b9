#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {

// Readers whose calls wait for a store that hangs.
class HangingReaders : public ::testing::Test {
 protected:
  static constexpr int kHandled = SIGUSR1;
  static constexpr std::size_t kMoreThanThreads = 80;

  void SetUp() override {
    world.tree.write("whole.bin", publish_bytes(3 * kMiB, 5));
    world.tree.write("other.bin", publish_bytes(300 * kKiB, 6));
    world.tree.write("unseen.bin", "bytes");
    ASSERT_TRUE(world.publish("a@v1"));
    ASSERT_TRUE(world.publish("b@v1"));
  }
  void TearDown() override {
    for (const pid_t reader : readers) {
      ::kill(reader, SIGKILL);
      ::waitpid(reader, nullptr, 0);
    }
  }
  // Content alone.
  void hang() {
    world.faulty->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
      if (call.key.starts_with(".millrace/")) return std::nullopt;
      return Fault{.kind = Fault::Kind::kHang};
    });
  }
  // One that exits with 0 when `attempt` has worked, and has a handler for one signal.
  pid_t start_reader(const std::function<bool()>& attempt) {
    const pid_t reader = ::fork();
    if (reader == 0) {
      const rlimit no_core{};
      ::setrlimit(RLIMIT_CORE, &no_core);
      struct sigaction action{};
      action.sa_handler = [](int) {};
      ::sigaction(kHandled, &action, nullptr);
      ::_exit(attempt() ? 0 : 1);
    }
    readers.insert(reader);
    return reader;
  }
  // Past the page cache, so that this one request is all that there is.
  pid_t start_direct_reader() {
    return start_reader([path = world.mounted("whole.bin")] {
      alignas(4096) static char page[4096];
      const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
      return ::read(fd, page, sizeof(page)) > 0;
    });
  }
  void mount_all() {
    ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
    ASSERT_EQ(::access(world.mounted("datasets/b").c_str(), F_OK), 0);
  }
  // Each waits for the versions of a dataset, which nobody has asked for so far.
  void start_readers(std::size_t count) {
    world.faulty->set_plan([](const FaultableCall&) -> std::optional<Fault> {
      return Fault{.kind = Fault::Kind::kHang};
    });
    for (std::size_t n = 0; n < count; ++n) {
      start_reader([path = world.mounted("datasets/b/cold" + std::to_string(n))] {
        return ::access(path.c_str(), F_OK) == 0;
      });
    }
    wait_for([&] { return waiting() >= count; });
  }
  // Calls that are not answered so far.
  std::size_t waiting() { return world.connection().calls.size(); }
  void signal_all(int number) {
    for (const pid_t reader : readers)
      ::kill(reader, number);
  }
  // How a reader ended; nothing when it does not.
  std::optional<int> ending_of(pid_t reader) {
    int status = 0;
    if (!becomes([&] { return ::waitpid(reader, &status, WNOHANG) == reader; })) {
      return std::nullopt;
    }
    readers.erase(reader);
    return status;
  }
  void expect_all_end() {
    EXPECT_TRUE(becomes([this] {
      std::erase_if(readers, [](pid_t reader) { return ::waitpid(reader, nullptr, WNOHANG) != 0; });
      return readers.empty();
    })) << readers.size()
        << " cannot be killed";
  }
  // Before calls end by themselves, also where 80 processes are slow to start.
  static bool becomes(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + FuseWorld::kCallTimeout / 3;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  static void wait_for(const std::function<bool()>& condition) { ASSERT_TRUE(becomes(condition)); }

  void mount_version() {
    ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", FuseOpening::kPassthrough));
  }
  // Not by who had to wait.
  void expect_others_are_served(const std::string& version) {
    world.faulty->set_plan(no_faults());
    EXPECT_TRUE(FuseWorld::read_file_by(world.mounted(version + "other.bin"), kMiB) ==
                FuseWorld::read_file_by(world.tree.path("other.bin"), kMiB));
  }

  FuseWorld world;
  std::set<pid_t> readers;
};

}  // namespace millrace
