// What becomes of mounts when their daemon, or their keeper, ends or starts in an unlucky way.
#include <signal.h>

#include <chrono>
#include <future>

#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"
#include "tests/servers/child_process.h"
#include "tests/servers/fault_proxy.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;
using millrace::testing::FaultProxy;
using ::testing::HasSubstr;

class MountKeeperTest : public MountTest {
 protected:
  std::unique_ptr<ChildProcess> start(const std::string& script) {
    std::vector<std::string> command = {"/usr/bin/env", "-i", "DIR=" + directory_};
    for (const auto& [name, value] : variables_)
      command.push_back(name + "=" + value);
    command.insert(command.end(), {"/bin/bash", "-c", "cd $DIR; " + script});
    return std::make_unique<ChildProcess>(
        command,
        millrace::testing::ChildOptions{.output_file = path("started.log"), .environment = {}});
  }
  // Whether the kernel has sent the daemon a read.
  bool is_asked_to_read() {
    return bash(
               "curl -s --unix-socket $DIR/home/.local/share/millrace/millrace.sock "
               "http://d/metrics | grep '^millrace_fuse_requests_total.*read\"} [1-9]'")
               .exit_code == 0;
  }
  std::string daemon_log() const { return read("home/.local/share/millrace/serve.log"); }
};

TEST_F(MountKeeperTest, S22ADaemonThatCannotSayThatItIsReadyServesAllTheSame) {
  // Whoever reads what it says goes after the first line.
  const auto first = start("millrace serve 2> serve.log | head -n 1 > ready; sleep 1000");
  ASSERT_TRUE(becomes([this] { return read("ready").contains("ready: process"); }));
  succeed("millrace mount a@v1 mnt");
  const int before = daemon_pid();
  ASSERT_GT(before, 0);
  ::kill(before, SIGKILL);
  ASSERT_TRUE(becomes([&] { return daemon_pid() != before && daemon_pid() > 0; }))
      << read("serve.log");
  ASSERT_TRUE(becomes([this] { return read("serve.log").contains("nobody can be told"); }))
      << read("serve.log");
  succeed("(cd mnt && sha256sum --quiet -c ../sums)");
}

TEST_F(MountKeeperTest, S22AStartThatFailsLeavesTheMountsToTheNextOne) {
  succeed(
      "python3 -c \"import socket; s = socket.socket(); s.bind(('127.0.0.1', 0));"
      "print(s.getsockname()[1])\" > port; millrace mount --nfs 127.0.0.1:$(cat port) a@v1 mnt");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  ASSERT_EQ(keepers().size(), 1U);
  const int keeper = keepers().front();
  ::kill(keeper, SIGSTOP);  // Until somebody else has the port.
  ::kill(daemon, SIGKILL);
  auto other = start(
      "exec python3 -c \"import socket, time; s = socket.socket();"
      "s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1);"
      "\nwhile True:"
      "\n  try: s.bind(('127.0.0.1', $(cat port))); break"
      "\n  except OSError: pass"  // The daemon goes in its own time.
      "\ns.listen(); print('bound', flush=True); time.sleep(1000)\"");
  ASSERT_TRUE(becomes([this] { return read("started.log").contains("bound"); }))
      << read("started.log");
  ::kill(keeper, SIGCONT);
  ASSERT_TRUE(becomes([this] { return daemon_log().contains("nfs: "); })) << daemon_log();
  other.reset();
  succeed("(cd mnt && sha256sum --quiet -c ../sums)");
  EXPECT_TRUE(becomes([&] { return daemon_pid() != daemon && daemon_pid() > 0; }));
}

// At the one call of the kernel's that shows a mount, which the keeper has by then.
TEST_F(MountKeeperTest, S22ADaemonThatIsKilledWhileItMountsLeavesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "fusermount3 mounts for others, in one step";
  const auto daemon = start(
      "exec strace -f --seccomp-bpf -qq -e signal=none -o trace -e trace=move_mount"
      " -e inject=move_mount:signal=KILL millrace serve");
  ASSERT_TRUE(becomes([this] { return daemon_pid() > 0; })) << read("started.log");
  const int before = daemon_pid();
  EXPECT_NE(bash("cd $DIR; millrace mount a@v1 mnt").exit_code, 0);
  ASSERT_THAT(read("trace"), HasSubstr("move_mount")) << "it was killed there";
  EXPECT_EQ(bash("grep -c fuse.millrace.*$DIR/mnt /proc/self/mountinfo").out, "0\n");
  EXPECT_TRUE(becomes([&] { return daemon_pid() != before && daemon_pid() > 0; }));
  EXPECT_EQ(mounts(), 0);
  succeed("millrace stop; millrace mount a@v1 mnt; cmp tree/large.bin mnt/large.bin");
}

TEST_F(MountKeeperTest, WhereMountsAreMadeInOneStepTheyAreServedToo) {
  if (::geteuid() != 0) GTEST_SKIP() << "fusermount3 mounts for others";
  for (const std::string error : {"ENOSYS", "EPERM"}) {
    const auto daemon = start(
        "exec strace -f --seccomp-bpf -qq -e signal=none -o trace -e trace=fsopen"
        " -e inject=fsopen:error=" +
        error + " millrace serve");
    ASSERT_TRUE(becomes([this] { return daemon_pid() > 0; })) << read("started.log");
    succeed("millrace mount a@v1 mnt; cmp tree/large.bin mnt/large.bin");
    EXPECT_THAT(read("trace"), HasSubstr(error));
    succeed("millrace umount mnt; millrace stop");
  }
}

TEST_F(MountKeeperTest, AStopThatIsCutShortIsAStop) {
  const millrace::testing::StrictS3Server server;
  FaultProxy proxy(server.url());
  use_s3(proxy.endpoint());
  succeed("millrace publish tree a@v1; millrace mount a@v1 mnt; ls mnt");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  // A reader that the daemon waits for when it ends.
  proxy.set_policy(
      [](const millrace::testing::ProxiedRequest&) { return millrace::testing::Fault::kStall; });
  const auto reader = start("exec cat mnt/large.bin");
  ASSERT_TRUE(becomes([this] { return is_asked_to_read(); }));
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(becomes([this] { return !is_mounted() && keepers().empty(); }));
  ASSERT_TRUE(reader->running()) << "the mount and the keeper go first, and then it waits";
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(becomes([&] { return ::kill(daemon, 0) != 0; }));
  EXPECT_EQ(daemon_pid(), 0) << "nobody starts it again";
}

TEST_F(MountKeeperTest, AReadThatIsUnderWayAtAStopIsAnswered) {
  const millrace::testing::StrictS3Server server;
  FaultProxy proxy(server.url());
  // Breaks its promise when the test fails, and that ends the waiting too.
  std::promise<void> store_answers;
  use_s3(proxy.endpoint());
  // At the first close of all the kernel asks whether to tell of closes, and then no more.
  succeed("millrace publish tree a@v1; millrace mount a@v1 mnt; ls -l mnt/d; cat mnt/empty");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  proxy.set_policy(
      [answers = store_answers.get_future().share()](const millrace::testing::ProxiedRequest&) {
        answers.wait();
        return millrace::testing::Fault::kNone;
      });
  const auto reader = start("exec cat mnt/d/60.jpg > got");
  ASSERT_TRUE(becomes([this] { return is_asked_to_read(); }));
  const auto stopping = start("exec millrace stop");
  ASSERT_TRUE(becomes([this] { return !is_mounted() && keepers().empty(); }));
  EXPECT_TRUE(reader->running());
  EXPECT_TRUE(stopping->running());
  store_answers.set_value();
  EXPECT_EQ(reader->wait(std::chrono::seconds(60)), 0) << read("started.log");
  EXPECT_EQ(stopping->wait(std::chrono::seconds(60)), 0) << read("started.log");
  EXPECT_TRUE(read("got") == read("tree/d/60.jpg"));
  EXPECT_TRUE(becomes([&] { return ::kill(daemon, 0) != 0; }));
}

TEST_F(MountKeeperTest, AMountThatEndsHereIsServedWhereOthersStillSeeIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root has mounts of its own";
  succeed("millrace mount a@v1 mnt");
  const auto elsewhere = start(
      "exec unshare -m --propagation private bash -c 'echo in; until test -e go; do sleep 0.01;"
      "done; cd mnt && sha256sum --quiet -c ../sums'");
  ASSERT_TRUE(becomes([this] { return read("started.log") == "in\n"; })) << read("started.log");
  succeed("millrace umount mnt; touch go");
  EXPECT_EQ(elsewhere->wait(std::chrono::seconds(60)), 0) << read("started.log");
  EXPECT_FALSE(is_mounted());
}

TEST_F(MountKeeperTest, AKeeperNeedsNoSettings) {
  succeed(
      "millrace serve --background; mkdir -p home/.config/millrace;"
      "echo nonsense > home/.config/millrace/config.yaml");
  const Outcome mounted = succeed(
      "curl -sS --unix-socket home/.local/share/millrace/millrace.sock http://d/v1/mounts"
      " -d \"{\\\"source\\\": \\\"a@v1\\\", \\\"directory\\\": \\\"$DIR/mnt\\\"}\"");
  EXPECT_THAT(mounted.out, HasSubstr("/datasets/a/v1")) << mounted.out;
  EXPECT_EQ(keepers().size(), 1U);
  succeed("cmp tree/large.bin mnt/large.bin; rm home/.config/millrace/config.yaml");
}

TEST_F(MountKeeperTest, AForegroundMountThatHasEndedLeavesTheNextOneAlone) {
  const auto foreground = start("exec millrace mount --foreground a@v1 mnt");
  ASSERT_TRUE(becomes([this] { return read("started.log").contains(" is at "); }))
      << read("started.log");
  foreground->signal(SIGSTOP);  // Before it can see what comes.
  // The kernel gives the lowest number that is free, so that this mount has the number of the first
  // one, unless somebody else mounts at the same time.
  succeed("umount mnt; millrace mount a@v1 mnt");
  foreground->signal(SIGINT);
  foreground->signal(SIGCONT);
  EXPECT_EQ(foreground->wait(std::chrono::seconds(60)), 0) << read("started.log");
  EXPECT_TRUE(is_mounted());
  succeed("cmp tree/large.bin mnt/large.bin");
}

}  // namespace
}  // namespace millrace::cli
