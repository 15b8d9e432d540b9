// Who pays for what the store delivers, and what a fetch ahead must not cost others.
#include "base/fetch_account.h"

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cache/cache_world.h"
#include "tests/cache/held_back_store.h"

namespace millrace {
namespace {

class CountedFetches final : public FetchAccount {
 public:
  void add_fetched(std::uint64_t bytes) override { bytes_ += bytes; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::atomic<std::uint64_t> bytes_ = 0;
};

RequestContext paid_by(const std::shared_ptr<CountedFetches>& account) {
  return RequestContext::background().with_account(account);
}

// Fails the test when it does not come true soon.
void wait_until(const std::function<bool()>& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!condition() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  ASSERT_TRUE(condition());
}

TEST(FetchAccountTest, SixtyFourReadersPayForEachByteOnce) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("large", 12 * kMiB + 17);
  std::vector<std::shared_ptr<CountedFetches>> accounts;
  std::vector<std::thread> readers;
  for (int n = 0; n < 64; ++n) {
    accounts.push_back(std::make_shared<CountedFetches>());
    readers.emplace_back([&, account = accounts.back()] {
      Waiter<Slice> waiter;
      world.cache().read(paid_by(account), object, {0, object.size()}, waiter.completion());
      EXPECT_TRUE(waiter.wait());
    });
  }
  for (std::thread& reader : readers)
    reader.join();
  std::uint64_t paid = 0;
  for (const auto& account : accounts)
    paid += account->bytes();
  EXPECT_EQ(paid, object.size());
}

TEST(FetchAccountTest, WhatIsCachedCostsNothing) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("o", 3 * kMiB);
  const auto first = std::make_shared<CountedFetches>();
  const auto second = std::make_shared<CountedFetches>();
  const ByteRange all{0, object.size()};
  ASSERT_TRUE(world.cache().warm(paid_by(first), object, all, Urgency::kSpeculative).ok());
  ASSERT_TRUE(world.cache().warm(paid_by(second), object, all, Urgency::kSpeculative).ok());
  Waiter<Slice> waiter;
  world.cache().read(paid_by(second), object, all, waiter.completion());
  ASSERT_TRUE(waiter.wait());
  EXPECT_EQ(first->bytes(), object.size());
  EXPECT_EQ(second->bytes(), 0u);
}

TEST(FetchAccountTest, AReaderInSequencePaysForWhatIsFetchedAheadOfIt) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("stream", 24 * kMiB);
  const auto account = std::make_shared<CountedFetches>();
  for (std::uint64_t at = 0; at < object.size(); at += 256 * kKiB) {
    Waiter<Slice> waiter;
    world.cache().read(paid_by(account), object, {at, 256 * kKiB}, waiter.completion());
    ASSERT_TRUE(waiter.wait());
  }
  EXPECT_EQ(account->bytes(), object.size());
}

// A cache before a store that answers when the test says so, with room for eight requests.
TEST(FetchAccountTest, WhatIsPlannedIsPaidByWhomItIsFor) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion first = world.add("first", 3 * kMiB);
  const ObjectVersion second = world.add("second", 5 * kMiB + 1);
  const auto planner = std::make_shared<CountedFetches>();
  const auto other = std::make_shared<CountedFetches>();
  ASSERT_TRUE(world.cache().plans().announce(
      paid_by(planner), {{.object = first, .range = {0, first.size()}},
                         {.object = second, .range = {0, second.size()}, .account = other}}));
  wait_until([&] { return planner->bytes() + other->bytes() == first.size() + second.size(); });
  EXPECT_EQ(planner->bytes(), first.size());
  EXPECT_EQ(other->bytes(), second.size());
}

class WarmAheadTest : public ::testing::Test {
 protected:
  WarmAheadTest() {
    BlockCacheOptions options;
    options.directories.push_back({.path = "/cache", .quota_bytes = kGiB});
    options.fetches.requests_in_flight_max = 8;
    cache_ = DiskBlockCache::open({.disk = disk_,
                                   .clock = system_clock(),
                                   .disk_executor = threads_,
                                   .fetch_executor = threads_,
                                   .buffers = buffers_,
                                   .metrics = metrics_},
                                  std::move(options))
                 .value();
    cache_->add_store(StoreId("s"), store_);
  }
  ObjectVersion object(const std::string& key, std::uint64_t size) const {
    return {StoreId("s"), ObjectKey(key), ObjectIdentity("1"), size};
  }
  std::size_t waiting_for(const std::string& key) const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < store_->waiting(); ++i)
      count += store_->key(i) == key ? 1 : 0;
    return count;
  }

  const std::shared_ptr<HeldBackStore> store_ = std::make_shared<HeldBackStore>();
  MemoryDisk disk_;
  Metrics metrics_;
  BufferPool buffers_{{.bytes_max = 256 * kMiB, .idle_bytes_max = 0}};
  ThreadPool threads_{{.name = "cache", .threads = 4, .queued_tasks_max = 1024}};
  std::unique_ptr<DiskBlockCache> cache_;
};

TEST_F(WarmAheadTest, ReadersComeBeforeIt) {
  const ObjectVersion ahead = object("ahead", 40 * kBlockBytes);
  std::thread warmer([&] {
    EXPECT_EQ(
        cache_->warm(RequestContext::background(), ahead, {0, ahead.size()}, Urgency::kSpeculative)
            .code(),
        StatusCode::kUnavailable);
  });
  wait_until([&] { return store_->waiting() == 7; });  // It never takes the last place.

  // One reader takes the place that is kept free; the other is first in the queue.
  Waiter<Slice> first;
  Waiter<Slice> second;
  cache_->read(RequestContext::background(), object("a", 100), {0, 100}, first.completion());
  wait_until([&] { return waiting_for("a") == 1; });
  cache_->read(RequestContext::background(), object("b", 100), {0, 100}, second.completion());
  EXPECT_EQ(waiting_for("b"), 0u);
  store_->answer(0);
  wait_until([&] { return waiting_for("b") == 1; });
  EXPECT_EQ(waiting_for("ahead"), 6u);

  store_->answer(6);
  store_->answer(6);
  EXPECT_TRUE(first.wait());
  EXPECT_TRUE(second.wait());
  while (store_->waiting() > 0)
    store_->fail(0, StatusCode::kUnavailable);
  warmer.join();
}

TEST_F(WarmAheadTest, ItsCallerNeedNotWaitForASlowStore) {
  const ObjectVersion ahead = object("ahead", 2 * kBlockBytes);
  const auto cancellation = std::make_shared<Cancellation>();
  std::thread warmer([&] {
    EXPECT_EQ(cache_
                  ->warm(RequestContext::background().with_cancellation(cancellation), ahead,
                         {0, ahead.size()}, Urgency::kSpeculative)
                  .code(),
              StatusCode::kCancelled);
  });
  wait_until([&] { return store_->waiting() == 2; });
  cancellation->request();
  warmer.join();
  EXPECT_EQ(store_->waiting(), 2u) << "others may want it";
}

}  // namespace
}  // namespace millrace
