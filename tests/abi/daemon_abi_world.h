#pragma once

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/abi/abi_world.h"

namespace millrace {

// A machine of its own, with the program that ctest names.
class DaemonAbiTest : public AbiWorld {
 protected:
  DaemonAbiTest() {
    ::setenv("HOME", home.root().c_str(), 1);
    ::unsetenv("XDG_DATA_HOME");
    engine = "daemon";
    make_files(3, 40);
  }
  void SetUp() override {
    ASSERT_NE(::getenv("MILLRACE_BIN"), nullptr) << "it names no program: run it through ctest";
  }
  void TearDown() override { run("stop"); }

  // What a command says, of the daemon that the tests use.
  std::string run(const std::string& command) const {
    const char* const program = ::getenv("MILLRACE_BIN");
    if (program == nullptr) return {};
    const std::string line =
        fmt::format("{} {} --socket {} 2>&1", program, command, home.path("socket"));
    FILE* const pipe = ::popen(line.c_str(), "r");
    std::string said;
    std::array<char, 4096> some{};
    while (const std::size_t got = std::fread(some.data(), 1, some.size(), pipe))
      said.append(some.data(), got);
    ::pclose(pipe);
    return said;
  }
  pid_t daemon_pid() const {
    const AbiJson status = AbiJson::parse(run("status --json"), nullptr, false);
    return status.is_object() ? status.value("pid", -1) : -1;
  }
  void kill_daemon() const {
    const pid_t pid = daemon_pid();
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
  }
  // What a single process delivers in an epoch, without a daemon.
  std::string expected_digest() {
    engine = "process";
    const AbiDataset dataset = open(options());
    engine = "daemon";
    const AbiLoader loader = load(dataset, {{"batch", 16}});
    keys_of_epoch(loader);
    return digest(loader);
  }
};

}  // namespace millrace
