#include "service/cached_versions.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

TEST(CachedVersionsTest, AsksNoStoreForVersionsThatWereOnlyListed) {
  ServiceWorld world;
  for (const std::string name : {"a", "b"}) {
    world.tree.write("f", name + "'s");
    ASSERT_TRUE(world.publish(name + "@v1"));
  }
  const auto preload = world.preloads().start(world.context, {.version = ref_of("a@v1")});
  ASSERT_EQ(world.ended(preload->id).state, PreloadState::kReady);
  EXPECT_EQ(world.names(world.at("datasets/b").number), std::vector<std::string>{"v1"});
  ASSERT_EQ(world.versions().known().size(), 2U);
  const std::size_t requests = world.recording->requests().size();
  const LogCapture log;
  CachedVersions cached(world.versions(), world.datasets(), world.cache(), world.preloads(),
                        system_clock());
  const auto listed = cached.list(world.context);
  ASSERT_TRUE(listed) << listed.error().to_string();
  ASSERT_EQ(listed->size(), 1U);
  EXPECT_EQ(listed->front().ref, ref_of("a@v1"));
  EXPECT_GT(listed->front().cached_bytes, 0U);
  EXPECT_EQ(world.recording->requests().size(), requests);
  EXPECT_EQ(log.text(), "") << "nothing is wrong with the other one";
}

}  // namespace
}  // namespace millrace
