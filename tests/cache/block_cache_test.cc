// The cache as its users see it: right bytes, few requests, and a disk that may fail.
#include <random>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_world.h"

namespace millrace {
namespace {

class BlockCacheTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(world.start().ok()); }

  CacheWorld world;
};

TEST_F(BlockCacheTest, FetchesOnceAndReadsFromTheDiskThen) {
  const ObjectVersion object = world.add("a", 10 * kMiB + 17);
  EXPECT_TRUE(world.reads_right(object));
  world.settle();
  const std::uint64_t gets = world.gets();
  EXPECT_EQ(world.bytes_fetched(), object.size());
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_TRUE(world.reads_right(object, {5, 1000}));
  EXPECT_TRUE(world.reads_right(object, {object.size() - 3, 100}));
  EXPECT_EQ(world.gets(), gets);
}

TEST_F(BlockCacheTest, AnswersTheEdges) {
  const ObjectVersion object = world.add("a", 2 * kMiB);
  const ObjectVersion empty = world.add("empty", 0);
  EXPECT_EQ(world.read(object, {2 * kMiB, 10})->size(), 0u);
  EXPECT_EQ(world.read(object, {0, 0})->size(), 0u);
  EXPECT_EQ(world.read(empty, {0, 10})->size(), 0u);
  EXPECT_EQ(world.read(object, {2 * kMiB + 1, 10}).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(world.read(object, {2 * kMiB - 1, UINT64_MAX})->size(), 1u);
  EXPECT_LE(world.bytes_fetched(), 64 * kKiB) << "only the last byte was asked for";
}

TEST_F(BlockCacheTest, ASmallReadOfAColdFileFetchesOneUnit) {
  const ObjectVersion object = world.add("a", 64 * kMiB);
  EXPECT_TRUE(world.reads_right(object, {30 * kMiB + 5, 4 * kKiB}));
  EXPECT_EQ(world.gets(), 1u);
  EXPECT_EQ(world.bytes_fetched(), kUnitBytes);
}

TEST_F(BlockCacheTest, SmallObjectsAreFetchedWhole) {
  const ObjectVersion object = world.add("small", 300 * kKiB);
  EXPECT_TRUE(world.reads_right(object, {200 * kKiB, 10}));
  world.settle();
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_EQ(world.gets(), 1u);
  EXPECT_EQ(world.bytes_fetched(), object.size());
}

TEST_F(BlockCacheTest, AdjacentMissingUnitsAreOneGet) {
  const ObjectVersion object = world.add("a", 8 * kMiB);
  EXPECT_TRUE(world.reads_right(object, {kMiB, kUnitBytes}));
  world.settle();
  EXPECT_TRUE(world.reads_right(object, {0, 2 * kMiB}));
  EXPECT_EQ(world.gets(), 3u) << "one before the unit that is there, one after it";
  EXPECT_EQ(world.bytes_fetched(), 2 * kMiB);
}

TEST_F(BlockCacheTest, ASequentialReaderFetchesEveryByteOnce) {
  const ObjectVersion object = world.add("a", 96 * kMiB + 100);
  for (std::uint64_t at = 0; at < object.size(); at += 128 * kKiB)
    ASSERT_TRUE(world.reads_right(object, {at, 128 * kKiB}));
  world.settle();
  EXPECT_EQ(world.bytes_fetched(), object.size());
  EXPECT_LT(world.gets(), 250u) << "of 768 reads";
}

TEST_F(BlockCacheTest, RandomReadsFetchLittleMoreThanTheyAskFor) {
  const ObjectVersion object = world.add("a", 256 * kMiB);
  std::mt19937_64 random(1);
  std::uint64_t asked = 0;
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t unit = random() % (object.size() / kUnitBytes);
    ASSERT_TRUE(world.reads_right(object, {unit * kUnitBytes, kUnitBytes}));
    asked += kUnitBytes;
  }
  world.settle();
  EXPECT_LE(static_cast<double>(world.bytes_fetched()), 1.2 * static_cast<double>(asked));
}

TEST_F(BlockCacheTest, AHundredThreadsAskingForOneColdBlockSendOneGet) {
  const ObjectVersion object = world.add("a", 64 * kMiB);
  world.store->set_plan([](const FaultableCall&) {
    return Fault{.kind = Fault::Kind::kDelay, .delay = std::chrono::milliseconds(50)};
  });
  std::vector<std::thread> readers;
  for (int i = 0; i < 100; ++i) {
    readers.emplace_back([&] { EXPECT_TRUE(world.reads_right(object, {8 * kMiB, kMiB})); });
  }
  for (std::thread& reader : readers)
    reader.join();
  EXPECT_EQ(world.gets(), 1u);
}

TEST_F(BlockCacheTest, ARestartKeepsTheCacheAndChecksItOnce) {
  const ObjectVersion large = world.add("large", 20 * kMiB);
  const ObjectVersion small = world.add("small", 100'000);
  ASSERT_TRUE(world.reads_right(large));
  ASSERT_TRUE(world.reads_right(small));
  world.settle();
  const std::uint64_t gets = world.gets();
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(large));
  EXPECT_TRUE(world.reads_right(small));
  EXPECT_EQ(world.gets(), gets);
  world.cache().wait_for_scan();
  EXPECT_GE(world.cache().usage().used_bytes, large.size() + small.size());
}

TEST_F(BlockCacheTest, OneProcessOwnsTheDirectory) {
  CacheWorldOptions options;
  const Status second = [&] {
    Metrics metrics;
    auto directory = CacheDirectory::open(world.disk, {.path = "/cache"}, system_clock(), metrics);
    return directory ? Status() : directory.error();
  }();
  EXPECT_EQ(second.code(), StatusCode::kConflict);
  EXPECT_NE(second.message().find("process"), std::string::npos) << second.message();
}

TEST_F(BlockCacheTest, AnObjectThatChangedInTheStoreIsNeverMixed) {
  const ObjectVersion old = world.add("a", 8 * kMiB);
  ASSERT_TRUE(world.reads_right(old, {0, kUnitBytes}));
  world.add("a", 8 * kMiB);
  EXPECT_EQ(world.read(old, {4 * kMiB, kUnitBytes}).error().code(),
            StatusCode::kPreconditionFailed);
  EXPECT_TRUE(world.read(old, {0, kUnitBytes}).has_value()) << "what is cached stays readable";
}

TEST_F(BlockCacheTest, BytesThatDoNotFitTheManifestAreFetchedAgainAndNeverServed) {
  LogCapture quiet;
  const ObjectVersion object = world.add("a", 4 * kMiB, true);
  world.store->set_plan(fault_nth_call(1, {.kind = Fault::Kind::kCorrupt}));
  EXPECT_TRUE(world.reads_right(object, {0, kMiB}));
  EXPECT_EQ(world.bad_units(CacheDamage::kFetched), 1u);
  EXPECT_EQ(world.gets(), 2u);

  world.store->set_plan([](const FaultableCall&) { return Fault{.kind = Fault::Kind::kCorrupt}; });
  EXPECT_EQ(world.read(object, {2 * kMiB, kMiB}).error().code(), StatusCode::kCorruption);
}

TEST_F(BlockCacheTest, AFailedFetchFailsItsReadersAndIsTriedAnew) {
  const ObjectVersion object = world.add("a", 4 * kMiB);
  world.store->set_plan(fault_nth_call(1, {.kind = Fault::Kind::kFailBefore}));
  EXPECT_EQ(world.read(object, {0, kMiB}).error().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(world.reads_right(object, {0, kMiB}));
}

TEST_F(BlockCacheTest, AReadEndsByItsDeadline) {
  const ObjectVersion object = world.add("a", 4 * kMiB);
  world.store->set_plan([](const FaultableCall&) { return Fault{.kind = Fault::Kind::kHang}; });
  Waiter<Slice> waiter;
  const RequestContext context(system_clock().now() + std::chrono::milliseconds(20), "test");
  world.cache().read(context, object, {0, kMiB}, waiter.completion());
  EXPECT_EQ(waiter.wait().error().code(), StatusCode::kDeadlineExceeded);
  world.store->set_plan(no_faults());
}

TEST_F(BlockCacheTest, ACancelledReadEndsAtOnce) {
  const ObjectVersion object = world.add("a", 4 * kMiB);
  world.store->set_plan([](const FaultableCall&) { return Fault{.kind = Fault::Kind::kHang}; });
  Waiter<Slice> waiter;
  const RequestContext context = RequestContext::background();
  world.cache().read(context, object, {0, kMiB}, waiter.completion());
  context.cancellation().request();
  EXPECT_EQ(waiter.wait().error().code(), StatusCode::kCancelled);
}

TEST_F(BlockCacheTest, ADiskThatCannotBeWrittenSlowsNobodyDown) {
  LogCapture log;
  const ObjectVersion object = world.add("a", 4 * kMiB);
  world.disk.set_fault(read_only_disk());
  EXPECT_TRUE(world.reads_right(object));
  world.settle();
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_GE(world.skipped(CacheSkip::kDiskFailure), 1u);
  EXPECT_NE(log.text().find("cannot write to the cache"), std::string::npos);
}

TEST_F(BlockCacheTest, ADiskThatCannotBeReadIsAnsweredByTheStore) {
  LogCapture quiet;
  const ObjectVersion object = world.add("a", 4 * kMiB);
  ASSERT_TRUE(world.reads_right(object));
  world.settle();
  world.disk.set_fault([](const DiskCall& call) {
    return call.operation == DiskOperation::kRead && call.path.ends_with(".data") ? EIO : 0;
  });
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_GE(world.bad_units(CacheDamage::kRead), 1u);
}

TEST_F(BlockCacheTest, WarmGetsARangeOntoTheDisk) {
  const ObjectVersion object = world.add("a", 80 * kMiB);
  const RequestContext context = RequestContext::background();
  ASSERT_TRUE(world.cache().warm(context, object, {0, object.size()}, Urgency::kDemanded).ok());
  const std::uint64_t gets = world.gets();
  EXPECT_EQ(gets, 20u) << "blocks of 4 MiB";
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_EQ(world.gets(), gets);
}

// Which looks as if it had been pushed out.
TEST_F(BlockCacheTest, WhatIsFoundDamagedWhileTheRestIsFetchedIsFetchedAgain) {
  const ObjectVersion object = world.add("a", 4 * kMiB);
  const RequestContext context = RequestContext::background();
  ASSERT_TRUE(world.cache().warm(context, object, {0, 2 * kMiB}, Urgency::kSpeculative).ok());
  world.settle();
  ASSERT_TRUE(world.start().ok());
  std::atomic<bool> is_checked = false;
  world.store->set_plan([&](const FaultableCall&) -> std::optional<Fault> {
    if (is_checked.exchange(true)) return std::nullopt;
    world.disk.set_fault([](const DiskCall& call) {
      return call.operation == DiskOperation::kRead && call.path.ends_with(".data") ? EIO : 0;
    });
    const auto report = world.cache().verify(context, object);
    EXPECT_TRUE(report && report->bad_units > 0);
    world.disk.set_fault({});
    return std::nullopt;
  });
  const Status warm = world.cache().warm(context, object, {0, 4 * kMiB}, Urgency::kSpeculative);
  EXPECT_TRUE(warm.ok()) << warm.to_string();
  EXPECT_TRUE(is_checked);
  EXPECT_TRUE(world.reads_right(object));
}

TEST_F(BlockCacheTest, DropTakesAnObjectOffTheDisk) {
  const ObjectVersion object = world.add("a", 8 * kMiB);
  const ObjectVersion small = world.add("b", 1000);
  ASSERT_TRUE(world.reads_right(object));
  ASSERT_TRUE(world.reads_right(small));
  world.settle();
  ASSERT_GT(world.cache().usage().used_bytes, 8 * kMiB);
  EXPECT_TRUE(world.cache().drop(RequestContext::background(), object).ok());
  EXPECT_TRUE(world.cache().drop(RequestContext::background(), small).ok());
  EXPECT_EQ(world.cache().usage().used_bytes, 0u);
  EXPECT_TRUE(world.reads_right(object));
  EXPECT_TRUE(world.reads_right(small));
}

TEST(BlockCacheEviction, StaysWithinItsQuotaAndServesRightBytes) {
  CacheWorld world({.quota_bytes = 64 * kMiB});
  ASSERT_TRUE(world.start().ok());
  std::vector<ObjectVersion> objects;
  for (int i = 0; i < 12; ++i) {
    objects.push_back(world.add("large" + std::to_string(i), 16 * kMiB + i));
    objects.push_back(world.add("small" + std::to_string(i), 500 * kKiB + i));
  }
  std::mt19937_64 random(7);
  for (int i = 0; i < 400; ++i) {
    const ObjectVersion& object = objects[random() % objects.size()];
    const std::uint64_t at = random() % object.size();
    ASSERT_TRUE(
        world.reads_right(object, {at, std::min(random() % (2 * kMiB) + 1, object.size() - at)}));
    EXPECT_LE(world.cache().usage().used_bytes, 64 * kMiB);
  }
  EXPECT_GT(world.metrics.counter(MetricId::kCacheEvictedBlocks).value(), 10u);
}

TEST(BlockCacheEviction, TellsHowMuchOfARangeIsCached) {
  CacheWorld world({.readahead = {.window_bytes_max = 0}});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("o", 3 * kMiB + 100);
  const auto cached = [&](ByteRange range) {
    return world.cache().cached_bytes(RequestContext::background(), object, range).value();
  };
  EXPECT_EQ(cached({0, object.size()}), 0u);
  ASSERT_TRUE(world.reads_right(object, {kMiB, 10}));
  ASSERT_TRUE(world.reads_right(object, {3 * kMiB + 50, 10}));
  world.settle();
  EXPECT_EQ(cached({0, object.size()}), kUnitBytes + 100);
  EXPECT_EQ(cached({kMiB - 5, 10}), 5u);
  EXPECT_EQ(cached({3 * kMiB + 40, 1000}), 60u);
  EXPECT_EQ(cached({object.size() + 7, 5}), 0u);
  ASSERT_TRUE(world.start().ok());
  EXPECT_EQ(cached({0, object.size()}), kUnitBytes + 100) << "also after a restart";
}

TEST(BlockCacheEviction, WhatLiesInAnotherDirectoryThanItsOwnGoesAloneAndHurtsNothing) {
  CacheWorld world({.quota_bytes = 16 * kMiB});
  ASSERT_TRUE(world.start().ok());
  std::vector<ObjectVersion> objects;
  for (int i = 0; i < 12; ++i)
    objects.push_back(world.add("o" + std::to_string(i), i % 2 == 0 ? 2 * kMiB : 300 * kKiB));
  const auto read_all = [&] {
    for (const ObjectVersion& object : objects)
      ASSERT_TRUE(world.reads_right(object));
    world.settle();
  };
  read_all();
  // Most objects live in the second directory now, but the first still has them as well.
  ASSERT_TRUE(world.start({{.path = "/more", .quota_bytes = 256 * kMiB}}).ok());
  world.cache().wait_for_scan();
  const std::uint64_t before = world.bytes_fetched();
  read_all();
  const std::uint64_t moved_bytes = world.bytes_fetched() - before;
  ASSERT_GT(moved_bytes, 8 * kMiB);
  // Room for everything that lives in the first one, at the cost of what does not any more.
  std::vector<ObjectVersion> others;
  for (int i = 0; i < 64; ++i) {
    others.push_back(world.add("other" + std::to_string(i), 2 * kMiB));
    ASSERT_TRUE(world.reads_right(others.back()));
  }
  world.settle();
  EXPECT_GT(world.metrics.counter(MetricId::kCacheEvictedBlocks).value(), 5u);
  const std::uint64_t later = world.bytes_fetched();
  read_all();
  const std::uint64_t all_bytes = 6 * (2 * kMiB + 300 * kKiB);
  EXPECT_LE(world.bytes_fetched() - later, all_bytes - moved_bytes)
      << "what lives in the second directory is still there";
}

TEST(BlockCacheEviction, ReadersUnderEvictionNeverSeeAHole) {
  CacheWorld world({.quota_bytes = 24 * kMiB, .readahead = {.window_bytes_max = 8 * kMiB}});
  ASSERT_TRUE(world.start().ok());
  std::vector<ObjectVersion> objects;
  for (int i = 0; i < 6; ++i)
    objects.push_back(world.add("o" + std::to_string(i), 12 * kMiB));
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < 8; ++t) {
    readers.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 150; ++i) {
        const ObjectVersion& object = objects[random() % objects.size()];
        const std::uint64_t at = random() % object.size();
        const ByteRange range{at, std::min(random() % kMiB + 1, object.size() - at)};
        ASSERT_TRUE(world.reads_right(object, range));
      }
    });
  }
  for (std::thread& reader : readers)
    reader.join();
}

}  // namespace
}  // namespace millrace
