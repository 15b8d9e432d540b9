#include "tests/servers/nfs_guest.h"

#include <gmock/gmock.h>

namespace millrace::testing {
namespace {

using ::testing::HasSubstr;

TEST(NfsGuest, RunsScriptsOnAKernelWithAnNfsClient) {
  if (!NfsGuest::available()) GTEST_SKIP() << "tools/setup found no kernel for it";
  NfsGuest guest;
  EXPECT_THAT(guest.kernel(), HasSubstr("."));
  EXPECT_THAT(guest.run("cat /proc/filesystems").output, HasSubstr("nfs4"));
  const CommandResult failed = guest.run("echo to nobody >&2; exit 7");
  EXPECT_EQ(failed.status, 7);
  EXPECT_EQ(failed.output, "to nobody\n");
  EXPECT_EQ(guest.run("x=$(seq 1 20000); echo \"$x\" | wc -l").output, "20000\n");
  EXPECT_EQ(guest.run("seq 1 20000").output.size(), 108894U);
  // What is left in the background is there for the next script.
  EXPECT_EQ(guest.run("(until test -e /tmp/go; do sleep 0.1; done; echo done > /tmp/end) &").status,
            0);
  EXPECT_EQ(
      guest.run("touch /tmp/go; until test -s /tmp/end; do sleep 0.1; done; cat /tmp/end").output,
      "done\n");
  EXPECT_EQ(guest.run("sleep 60", std::chrono::milliseconds(100)).status, 124);
}

}  // namespace
}  // namespace millrace::testing
