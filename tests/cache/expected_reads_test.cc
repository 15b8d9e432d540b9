// What somebody will probably read: BlockCache::expect().
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/cache/cache_world.h"
#include "tests/cache/held_back_store.h"

namespace millrace {
namespace {

const RequestContext kContext = RequestContext::background();

// Until so much is on the disk, and nothing more is on its way.
void wait_for_expected(CacheWorld& world, std::uint64_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (world.cache().usage().used_bytes < bytes && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  world.settle();
}

std::uint64_t bytes_fetched_as(CacheWorld& world, Urgency urgency) {
  return world.metrics.counter(MetricId::kCacheFetchedBytes, {static_cast<std::size_t>(urgency)})
      .value();
}

TEST(ExpectedReads, AreThereWhenTheirReaderComes) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 24 * kMiB + 17);
  world.cache().expect(kContext, object, {0, UINT64_MAX});
  wait_for_expected(world, object.size());
  EXPECT_EQ(bytes_fetched_as(world, Urgency::kSpeculative), object.size());
  const std::uint64_t gets = world.gets();
  EXPECT_EQ(gets, 7u) << "blocks of 4 MiB";
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_EQ(world.gets(), gets);
}

TEST(ExpectedReads, AreFetchedOnceHoweverOftenTheyAreExpectedOrRead) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 32 * kMiB);
  ASSERT_TRUE(world.reads_right(object, {5 * kMiB, kMiB}));
  for (int n = 0; n < 3; ++n)
    world.cache().expect(kContext, object, {0, object.size()});
  EXPECT_TRUE(world.reads_right(object)) << "joins what is on its way";
  world.cache().expect(kContext, object, {0, object.size()});
  wait_for_expected(world, object.size());
  EXPECT_EQ(world.bytes_fetched(), object.size());
}

TEST(ExpectedReads, AreAPartOfTheCacheAtMost) {
  CacheWorld world({.quota_bytes = 64 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 48 * kMiB);
  world.cache().expect(kContext, object, {0, object.size()});
  wait_for_expected(world, 16 * kMiB);
  EXPECT_EQ(world.bytes_fetched(), 16 * kMiB);
}

TEST(ExpectedReads, AreNoneWhereReadingAheadIsOff) {
  CacheWorld world({.readahead = {.window_bytes_max = 0}});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 8 * kMiB);
  world.cache().expect(kContext, object, {0, object.size()});
  world.cache().expect(kContext, object, {object.size(), 1});
  EXPECT_TRUE(world.reads_right(object, {0, kUnitBytes}));
  world.settle();
  EXPECT_EQ(world.bytes_fetched(), kUnitBytes);
}

TEST(ExpectedReads, GiveWayToAPlan) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 16 * kMiB);
  ASSERT_TRUE(world.cache().plans().announce(kContext, {{object, {0, kMiB}}}));
  world.cache().expect(kContext, object, {0, object.size()});
  wait_for_expected(world, kMiB);
  EXPECT_EQ(world.bytes_fetched(), kMiB);
}

// Objects of a store that answers when the test says so, and eight requests at a time.
class HeldBackExpectedReads : public ::testing::Test {
 protected:
  void start(std::uint64_t queued_bytes_max) {
    world_ = std::make_unique<CacheWorld>(
        CacheWorldOptions{.fetches = {.requests_in_flight_max = kRequestsMax,
                                      .speculative_bytes_queued_max = queued_bytes_max}});
    ASSERT_TRUE(world_->start().ok());
    world_->cache().add_store(StoreId("held"), store_);
  }
  static ObjectVersion object(const std::string& key) {
    return {StoreId("held"), ObjectKey(key), ObjectIdentity("1"), 120 * kMiB};
  }
  void wait_for_calls(std::size_t calls) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (store_->calls() < calls && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
    ASSERT_EQ(store_->calls(), calls);
  }

  static constexpr std::uint32_t kRequestsMax = 8;
  const std::shared_ptr<HeldBackStore> store_ = std::make_shared<HeldBackStore>();
  std::unique_ptr<CacheWorld> world_;
};

TEST_F(HeldBackExpectedReads, WaitBehindWhatSomebodyWaitsFor) {
  start(kGiB);
  world_->cache().expect(kContext, object("expected"), {0, UINT64_MAX});
  wait_for_calls(kRequestsMax - 1);
  Waiter<Slice> first;
  world_->cache().read(kContext, object("demanded"), {0, 1}, first.completion());
  wait_for_calls(kRequestsMax);
  EXPECT_EQ(store_->key(kRequestsMax - 1), "demanded");
  // Loaded by now, so that the fetch waits when read() returns.
  ASSERT_EQ(world_->cache().cached_bytes(kContext, object("too"), {0, 1}), 0u);
  Waiter<Slice> second;
  world_->cache().read(kContext, object("too"), {0, 1}, second.completion());
  store_->answer(0);
  wait_for_calls(kRequestsMax + 1);
  EXPECT_EQ(store_->key(kRequestsMax - 1), "too") << "before the rest of what is expected";
}

TEST_F(HeldBackExpectedReads, AreLeftOutWhereTooMuchIsFetchedAhead) {
  start(kBlockBytes);
  world_->cache().expect(kContext, object("expected"), {0, UINT64_MAX});
  wait_for_calls(kRequestsMax - 1);
  for (std::size_t n = 0; n < kRequestsMax; ++n) {
    store_->answer(0);
    wait_for_calls(kRequestsMax);
  }
  world_->settle();
  EXPECT_EQ(store_->calls(), kRequestsMax) << "those that could be sent, and one that could wait";
}

TEST(ExpectedReads, OfACacheThatEndsAreCalledOff) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 64 * kMiB);
  world.cache().expect(kContext, object, {0, object.size()});
  world.stop();
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(object));
}

}  // namespace
}  // namespace millrace
