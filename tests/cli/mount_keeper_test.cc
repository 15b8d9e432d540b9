// What becomes of mounts when their daemon, or their keeper, ends or starts in an unlucky way.
#include <signal.h>

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
  std::string daemon_log() const { return read("home/.local/share/millrace/serve.log"); }
  std::string number() { return succeed("findmnt -rno MAJ:MIN mnt").out; }
};

TEST_F(MountKeeperTest, AStopThatIsCutShortIsAStop) {
  const millrace::testing::StrictS3Server server;
  FaultProxy proxy(server.url());
  variables_["AWS_ACCESS_KEY_ID"] = "test-access-key";
  variables_["AWS_SECRET_ACCESS_KEY"] = "test-secret-key";
  variables_["MILLRACE_STORE"] = "s3://test-bucket/pre?endpoint=" + proxy.endpoint();
  succeed("millrace publish tree a@v1; millrace mount a@v1 mnt; ls mnt");
  const int daemon = daemon_pid();
  ASSERT_GT(daemon, 0);
  // A reader that the daemon waits for when it ends.
  proxy.set_policy(
      [](const millrace::testing::ProxiedRequest&) { return millrace::testing::Fault::kStall; });
  const auto reader = start("exec cat mnt/large.bin");
  ASSERT_TRUE(becomes([this] {
    return bash(
               "curl -s --unix-socket $DIR/home/.local/share/millrace/millrace.sock "
               "http://d/metrics | grep '^millrace_fuse_requests_total.*read\"} [1-9]'")
               .exit_code == 0;
  }));
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(becomes([this] { return !is_mounted() && keepers().empty(); }));
  ASSERT_TRUE(reader->running()) << "the mount and the keeper go first, and then it waits";
  ::kill(daemon, SIGTERM);
  ASSERT_TRUE(becomes([&] { return ::kill(daemon, 0) != 0; }));
  EXPECT_EQ(daemon_pid(), 0) << "nobody starts it again";
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

}  // namespace
}  // namespace millrace::cli
