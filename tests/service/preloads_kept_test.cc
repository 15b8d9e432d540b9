// What a preload with a lease promises holds, whatever others ask for meanwhile.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/units.h"
#include "service/preload_run.h"
#include "service/preloads.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

constexpr std::size_t kKeptBytes = 3 * kMiB + 100;
constexpr int kKeptFiles = 20;

class PreloadsKeptTest : public ::testing::Test {
 protected:
  PreloadsKeptTest() {
    world.tree.write("large.bin", publish_bytes(kKeptBytes, 1));
    for (int n = 0; n < kKeptFiles; ++n)
      world.tree.write(std::to_string(n) + ".jpg", publish_bytes(kKiB, n));
    EXPECT_TRUE(world.publish("a@v1"));
  }
  static PreloadRequest leased() {
    return {.version = VersionRef::parse("a@v1").value(), .lease = std::chrono::hours(1)};
  }
  PreloadInfo preload(const PreloadRequest& request) {
    const Result<PreloadInfo> started = world.preloads().start(world.context, request);
    EXPECT_TRUE(started) << started.error().to_string();
    return world.ended(started->id);
  }
  std::vector<ObjectVersion> objects() {
    const auto tree =
        world.datasets().version(world.context, VersionRef::parse("a@v1").value()).value();
    const auto plan = PreloadPlan::make(world.context, system_clock(), tree->objects(), {}).value();
    std::vector<ObjectVersion> found;
    EXPECT_TRUE(plan.visit([&](const ObjectVersion& object, ByteRange) -> Status {
                      found.push_back(object);
                      return {};
                    })
                    .ok());
    return found;
  }

  ServiceWorld world{64 * kMiB};
};

TEST_F(PreloadsKeptTest, NobodyDropsWhatIsLeased) {
  const PreloadInfo ready = preload(leased());
  for (const ObjectVersion& object : objects()) {
    EXPECT_EQ(world.cache().drop(world.context, object).code(), StatusCode::kConflict);
  }
  ASSERT_TRUE(world.preloads().cancel(world.context, ready.id));
  for (const ObjectVersion& object : objects()) {
    EXPECT_TRUE(world.cache().drop(world.context, object).ok());
  }
}

TEST_F(PreloadsKeptTest, OneThatLostSomethingIsTakenUpAgain) {
  const PreloadInfo ready = preload(leased());
  EXPECT_EQ(preload(leased()).id, ready.id);
  // As when a unit is found damaged: the lease is there, the bytes are not.
  const LeaseId lease = PreloadRun::lease_of(ready.id);
  ASSERT_TRUE(world.cache().leases().release(world.context, lease).ok());
  for (const ObjectVersion& object : objects())
    ASSERT_TRUE(world.cache().drop(world.context, object).ok());
  const ObjectVersion first = objects().front();
  ASSERT_TRUE(world.cache()
                  .leases()
                  .grant(world.context, {.id = lease,
                                         .holder = "test",
                                         .lifetime = std::chrono::hours(1),
                                         .ranges = {{first, {0, first.size()}}}})
                  .ok());
  const Result<PreloadInfo> again = world.preloads().start(world.context, leased());
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->id, ready.id);
  EXPECT_EQ(world.ended(ready.id).state, PreloadState::kReady);
  for (const ObjectVersion& object : objects()) {
    EXPECT_EQ(world.cache().cached_bytes(world.context, object, {0, object.size()}).value(),
              object.size());
  }
}

TEST_F(PreloadsKeptTest, AskingAgainFindsTheOneWithTheLease) {
  for (int n = 0; n < 8; ++n) {
    const PreloadInfo ready = preload(leased());
    EXPECT_EQ(preload(leased()).id, ready.id) << "round " << n;
    ASSERT_TRUE(world.preloads().cancel(world.context, ready.id));
  }
}

TEST_F(PreloadsKeptTest, OneWithALeaseIsNotForgotten) {
  const PreloadInfo ready = preload(leased());
  for (int a = 0; a < kKeptFiles; ++a) {
    for (int b = 0; b < 6; ++b) {
      preload({.version = ready.request.version,
               .paths = {std::to_string(a) + ".jpg", std::to_string(b) + ".jpg"}});
    }
  }
  const Result<PreloadInfo> found = world.preloads().find(ready.id);
  ASSERT_TRUE(found) << found.error().to_string();
  EXPECT_TRUE(found->leased_until);
  EXPECT_LE(world.preloads().list().size(), PreloadOptions().ended_max + 1);
}

}  // namespace
}  // namespace millrace
