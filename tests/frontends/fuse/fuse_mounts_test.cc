// The mounts of a daemon, without the daemon.
#include "frontends/fuse/fuse_mounts.h"

#include <chrono>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

class FuseMountsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world.tree.write("f", "hello");
    ASSERT_TRUE(world.publish("a@v1"));
  }
  FuseMounts::Parts parts(const std::string& keeper_socket) {
    return {.files = world.files(),
            .clock = system_clock(),
            .late_answers = world.pool,
            .metrics = world.metrics(),
            .timeout = std::chrono::minutes(2),
            .keeper_socket = keeper_socket,
            .restart = {}};
  }

  FuseWorld world;
  const ScratchTree target;
};

// A daemon that is killed behind the mount and before the keeper has it leaves a dead mount.
TEST_F(FuseMountsTest, TheKeeperIsThereBeforeAnythingIsMounted) {
  // Neither can be: whose failure it is tells which is tried first.
  FuseMounts mounts(parts(target.path(std::string(200, 'k'))));
  const auto mounted = mounts.mount(
      world.context,
      {.path = "/datasets/a/v1", .directory = target.path("none"), .opening = std::nullopt});
  ASSERT_FALSE(mounted);
  EXPECT_EQ(mounted.error(), StatusCode::kInvalidArgument) << mounted.error().to_string();
}

}  // namespace
}  // namespace millrace
