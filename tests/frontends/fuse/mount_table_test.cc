#include "frontends/fuse/mount_table.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(MountTable, ReadsWhatTheKernelLists) {
  const auto mounts = parse_mountinfo(
      "22 27 0:20 / /sys rw,nosuid shared:7 master:1 - sysfs sysfs rw\n"
      "90 27 0:57 / /mnt/a\\040b\\011c\\012d\\134e ro - fuse.millrace millrace:/x\\040y ro\n"
      "91 27 0:57 /sub /mnt/caf\xE9 ro shared:1 - fuse.millrace millrace:/ ro\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[0].directory, "/sys");
  EXPECT_EQ(mounts[0].kind, "sysfs");
  EXPECT_EQ(mounts[1].number, "0:57");
  EXPECT_EQ(mounts[1].directory, "/mnt/a b\tc\nd\\e");
  EXPECT_EQ(mounts[1].kind, kMountKind);
  EXPECT_EQ(mounts[1].source, "millrace:/x y");
  EXPECT_EQ(mounts[2].directory, "/mnt/caf\xE9") << "any bytes";
}

TEST(MountTable, LeavesOutWhatIsNoMount) {
  EXPECT_TRUE(parse_mountinfo("").empty());
  for (const char* line :
       {"x", "1 2 3 4 5 6", "1 2 0:3 / /m rw - ", "1 2 0:3 / /m rw shared:1 x y", "1 2 0:3 / - rw"})
    EXPECT_TRUE(parse_mountinfo(line).empty()) << line;
}

TEST(MountTable, KnowsWhatIsMountedOnThisMachine) {
  ASSERT_TRUE(uppermost_mount("/proc"));
  EXPECT_EQ(uppermost_mount("/proc")->kind, "proc");
  EXPECT_FALSE(uppermost_mount("/proc/self"));
  EXPECT_TRUE(places_of(uppermost_mount("/proc")->number).empty()) << "it is not ours";
}

}  // namespace
}  // namespace millrace
