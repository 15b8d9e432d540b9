#include "vfs/recent_files.h"

#include <gtest/gtest.h>

#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

TEST(RecentFiles, OpensAFileOnce) {
  VfsWorld world;
  world.tree.write("a", "hello");
  ASSERT_TRUE(world.publish("d@v1"));
  RecentFiles files(world.files());
  const NodeNumber node = world.at("/datasets/d/v1/a").number;
  EXPECT_EQ(files.known(node), nullptr);
  const auto opened = files.file(world.context, node);
  ASSERT_TRUE(opened);
  EXPECT_EQ(files.file(world.context, node).value(), *opened);
  EXPECT_EQ(files.known(node), *opened);
}

TEST(RecentFiles, AFailureIsNotKept) {
  VfsWorld world;
  world.tree.write("a", "hello");
  ASSERT_TRUE(world.publish("d@v1"));
  RecentFiles files(world.files());
  const NodeNumber directory = world.at("/datasets/d/v1").number;
  EXPECT_FALSE(files.file(world.context, directory));
  EXPECT_EQ(files.known(directory), nullptr);
}

}  // namespace
}  // namespace millrace
