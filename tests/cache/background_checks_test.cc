#include "cache/background_checks.h"

#include <unistd.h>

#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "platform/posix_disk.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

// More than is checked while somebody waits.
constexpr std::uint64_t kManyBytes = 80 * kMiB;

class BackgroundChecksTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(world.start().ok()); }
  Result<std::unique_ptr<CompleteObject>> open(const ObjectVersion& object) {
    return world.cache().open_complete(RequestContext::background(), object);
  }

  TortureDirectory directory;
  PosixDisk posix;
  CacheWorld world{
      {.other_disk = &posix, .directory = directory.path() + "/cache", .faulty_disk = false}};
};

TEST_F(BackgroundChecksTest, ALargeObjectIsHandedOutAfterItWasChecked) {
  const ObjectVersion object = world.add("large", kManyBytes);
  ASSERT_TRUE(world.reads_right(object));
  world.settle();
  ASSERT_TRUE(open(object)) << "it was checked on its way in";
  ASSERT_TRUE(world.start().ok());
  auto whole = open(object);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(world.reads_right(object, {kManyBytes / 2, kMiB})) << "while it is being checked";
  while (!whole && whole.error() == StatusCode::kUnavailable) {
    std::this_thread::yield();
    whole = open(object);
  }
  ASSERT_TRUE(whole) << whole.error().to_string();
  EXPECT_EQ((*whole)->size(), kManyBytes);
}

TEST_F(BackgroundChecksTest, APartOfAnObjectIsNotCheckedForIt) {
  const ObjectVersion object = world.add("large", kManyBytes);
  ASSERT_TRUE(world.reads_right(object, {0, 70 * kMiB}));
  world.settle();
  ASSERT_TRUE(world.start().ok());
  const auto whole = open(object);
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code(), StatusCode::kNotFound);
}

TEST_F(BackgroundChecksTest, AStopDoesNotWaitForAllOfIt) {
  const ObjectVersion object = world.add("large", kManyBytes);
  ASSERT_TRUE(world.reads_right(object));
  world.settle();
  for (int n = 0; n < 20; ++n) {
    ASSERT_TRUE(world.start().ok());
    (void)open(object);
    world.stop();
  }
  ASSERT_TRUE(world.start().ok());
}

}  // namespace
}  // namespace millrace
