// What becomes of mounts when their daemon, or their keeper, ends or starts in an unlucky way.
#include <signal.h>

#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"
#include "tests/servers/child_process.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;
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
