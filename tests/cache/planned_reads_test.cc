#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "platform/posix_disk.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

std::vector<PlannedRead> epoch_of(const ObjectVersion& object, unsigned seed) {
  std::vector<std::uint32_t> order(block_count(object.size()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<PlannedRead> reads;
  for (const std::uint32_t block : order)
    reads.push_back({object, {block * kBlockBytes, kBlockBytes}});
  return reads;
}

// Until so much was fetched ahead, and nothing more is on its way.
void wait_for_bytes(CacheWorld& world, std::uint64_t bytes) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (world.cache().usage().used_bytes < bytes && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  world.settle();
}

TEST(PlannedReads, FetchInOrderBeforeTheJobAsks) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion object = world.add("a", 64 * kMiB);
  const std::vector<PlannedRead> reads = epoch_of(object, 1);
  ASSERT_TRUE(world.cache().plans().announce(context, reads));
  wait_for_bytes(world, object.size());
  EXPECT_EQ(world.bytes_fetched(), object.size()) << "all of it fits into the window";
  const std::uint64_t gets = world.gets();
  for (const PlannedRead& read : reads)
    EXPECT_TRUE(world.reads_right(object, read.range));
  EXPECT_EQ(world.gets(), gets);
}

TEST(PlannedReads, ShuffledEpochsFetchNoMoreThanTheyMust) {
  constexpr std::uint64_t kQuota = 32 * kMiB;
  CacheWorld world({.quota_bytes = kQuota, .planned_bytes_ahead_max = 4 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion object = world.add("a", 64 * kMiB);
  PlannedReads& plans = world.cache().plans();
  std::vector<PlannedRead> reads = epoch_of(object, 1);
  const Result<PlanId> plan = plans.announce(context, reads);
  ASSERT_TRUE(plan);
  constexpr unsigned kEpochs = 6;
  std::uint64_t done = 0;
  for (unsigned epoch = 1; epoch <= kEpochs; ++epoch) {
    const std::vector<PlannedRead> next = epoch_of(object, epoch + 1);
    if (epoch < kEpochs) {
      ASSERT_TRUE(plans.extend(context, *plan, next).ok());
    }
    for (const PlannedRead& read : reads) {
      ASSERT_TRUE(world.reads_right(object, read.range));
      ASSERT_TRUE(plans.advance(*plan, ++done).ok());
    }
    reads = next;
  }
  world.settle();
  // Half of it fits, and all of that half could be hits from the second epoch on; a shuffled order
  // and a cache of eight blocks leave some of it out. LRU would fetch nearly everything.
  const std::uint64_t all = kEpochs * object.size();
  EXPECT_LT(world.bytes_fetched(), all * 8 / 10);
  EXPECT_LE(world.cache().usage().used_bytes, kQuota);
}

// Samples that lie side by side, read in no order.
std::vector<PlannedRead> samples_of(const ObjectVersion& object, std::uint64_t sample_bytes) {
  std::vector<PlannedRead> reads;
  for (std::uint64_t at = 0; at + sample_bytes <= object.size(); at += sample_bytes)
    reads.push_back({object, {at, sample_bytes}});
  std::mt19937_64 random(7);
  std::shuffle(reads.begin(), reads.end(), random);
  return reads;
}

TEST(PlannedReads, SamplesThatShareAPieceAreFetchedWithIt) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 16 * kMiB);
  const std::vector<PlannedRead> reads = samples_of(object, 100'000);
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  // Some of these are still on their way, or queued: they are waited for, and not asked for again.
  for (const PlannedRead& read : reads)
    ASSERT_TRUE(world.reads_right(object, read.range));
  world.settle();
  EXPECT_EQ(world.bytes_fetched(), object.size());
  EXPECT_EQ(world.gets(), object.size() / kPlannedPieceBytes);
}

TEST(PlannedReads, AReadThatIsFasterThanItsPlanTakesAWholePiece) {
  CacheWorld world({.planned_bytes_ahead_max = kPlannedPieceBytes});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 8 * kMiB);
  const std::vector<PlannedRead> reads = {{object, {0, kKiB}}, {object, {5 * kMiB, kKiB}}};
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  wait_for_bytes(world, kPlannedPieceBytes);
  EXPECT_EQ(world.gets(), 1u) << "the first piece, and no further ahead";
  ASSERT_TRUE(world.reads_right(object, {5 * kMiB + 300'000, 1000}));
  ASSERT_TRUE(world.reads_right(object, {5 * kMiB, kMiB}));
  EXPECT_EQ(world.gets(), 2u);
  EXPECT_EQ(world.bytes_fetched(), 2 * kPlannedPieceBytes);
}

TEST(PlannedReads, WhatIsBehindTheBoundsIsLeftToOthers) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 8 * kMiB);
  // Samples of one block, which begins and ends in the middle of a piece.
  const ByteRange block{kPlannedPieceBytes + 5 * kUnitBytes, 2 * kPlannedPieceBytes};
  std::vector<PlannedRead> reads;
  for (std::uint64_t at = block.offset; at < block.end(); at += 2 * kUnitBytes)
    reads.push_back({.object = object, .range = {at, kKiB}, .around = block});
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  // A read that overtakes the plan fetches what it reads alone.
  wait_for_bytes(world, block.length);
  for (const PlannedRead& read : reads)
    ASSERT_TRUE(world.reads_right(object, read.range));
  world.settle();
  EXPECT_EQ(world.bytes_fetched(), block.length);
  EXPECT_EQ(world.gets(), 3u) << "two parts of pieces, and the piece between them";
}

TEST(PlannedReads, SamplesAloneAreFetchedWithTheirNeighboursInThePlan) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 8 * kMiB);
  std::vector<PlannedRead> reads;
  for (const std::uint64_t unit : {3, 9, 4, 5, 100}) {
    const ByteRange range{unit * kUnitBytes + 7, 100};
    reads.push_back({.object = object, .range = range, .around = range});
  }
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  wait_for_bytes(world, reads.size() * kUnitBytes);
  // Not planned, so that nothing is fetched around it.
  ASSERT_TRUE(world.reads_right(object, {64 * kUnitBytes, 1}));
  for (const PlannedRead& read : reads)
    ASSERT_TRUE(world.reads_right(object, read.range));
  world.settle();
  EXPECT_EQ(world.bytes_fetched(), 6 * kUnitBytes);
  EXPECT_EQ(world.gets(), 4u) << "units 3 to 5 come together";
}

TEST(PlannedReads, BoundsThatLeaveOutTheReadAreWidened) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 2 * kMiB);
  const std::vector<PlannedRead> reads = {
      {.object = object, .range = {kMiB, 1}, .around = {kMiB + 3 * kUnitBytes, 1}},
      {.object = object, .range = {0, 1}, .around = {5 * kGiB, UINT64_MAX}}};
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  for (const PlannedRead& read : reads)
    ASSERT_TRUE(world.reads_right(object, read.range));
  world.settle();
  EXPECT_LE(world.bytes_fetched(), 2 * kMiB);
}

// Whether every page of the object's file can be had without the disk.
bool is_in_page_cache(Disk& disk, const std::string& cache, const ObjectVersion& object) {
  const std::string digest = object.digest().to_text();
  const auto file = disk.open(
      fmt::format("{}/objects/{}/{}.data", cache, digest.substr(0, 2), digest), OpenMode::kRead);
  EXPECT_TRUE(file) << file.error().to_string();
  std::vector<std::byte> bytes(object.size());
  return file && *(*file)->read_now(0, bytes);
}

TEST(PlannedReads, WhatIsPlannedStaysInThePageCache) {
  TortureDirectory directory;
  PosixDisk posix;
  const std::string cache = directory.path() + "/cache";
  CacheWorld world({.other_disk = &posix, .directory = cache, .faulty_disk = false});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion planned = world.add("planned", 8 * kMiB);
  const std::vector<PlannedRead> reads = epoch_of(planned, 1);
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  wait_for_bytes(world, planned.size());
  EXPECT_TRUE(is_in_page_cache(posix, cache, planned));
}

TEST(PlannedReads, APartOfASmallCacheIsFilledAhead) {
  CacheWorld world({.quota_bytes = 32 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion object = world.add("a", 64 * kMiB);
  const std::vector<PlannedRead> reads = epoch_of(object, 1);
  const Result<PlanId> plan = world.cache().plans().announce(context, reads);
  ASSERT_TRUE(plan);
  wait_for_bytes(world, 8 * kMiB);
  EXPECT_EQ(world.bytes_fetched(), 8 * kMiB);
  ASSERT_TRUE(world.cache().plans().advance(*plan, 1).ok());
  wait_for_bytes(world, 12 * kMiB);
  EXPECT_EQ(world.bytes_fetched(), 12 * kMiB);
}

TEST(PlannedReads, ManyPiecesAtATimeTakeTheMemoryOfTheirSamples) {
  // Less than the pieces have that the samples are in.
  CacheWorld world({.memory_bytes_max = 48 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object = world.add("a", 64 * kMiB);
  std::vector<PlannedRead> reads;
  for (std::uint64_t at = 0; at < object.size(); at += kPlannedPieceBytes)
    reads.push_back({object, {at + 1000, 100'000}});
  ASSERT_TRUE(world.cache().plans().announce(RequestContext::background(), reads));
  std::vector<Slice> held;
  for (const PlannedRead& read : reads) {
    const Result<Slice> sample = world.read(object, read.range);
    ASSERT_TRUE(sample) << sample.error().to_string();
    held.push_back(*sample);
  }
  EXPECT_EQ(held.size(), object.size() / kPlannedPieceBytes);
}

TEST(PlannedReads, AWithdrawnPlanIsGone) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion object = world.add("a", 8 * kMiB);
  PlannedReads& plans = world.cache().plans();
  const Result<PlanId> plan = plans.announce(context, epoch_of(object, 1));
  ASSERT_TRUE(plan);
  EXPECT_EQ(plans.advance(*plan, 3).code(), StatusCode::kInvalidArgument);
  plans.withdraw(*plan);
  plans.withdraw(*plan);
  EXPECT_EQ(plans.advance(*plan, 1).code(), StatusCode::kNotFound);
  EXPECT_EQ(plans.extend(context, *plan, {}).code(), StatusCode::kNotFound);
  world.settle();
  EXPECT_TRUE(world.reads_right(object));
}

TEST(CacheScrub, ChecksEverythingAndFindsDamage) {
  LogCapture quiet;
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const RequestContext context = RequestContext::background();
  const ObjectVersion large = world.add("large", 5 * kMiB);
  const ObjectVersion small = world.add("small", 100'000);
  ASSERT_TRUE(world.reads_right(large));
  ASSERT_TRUE(world.reads_right(small));
  world.settle();
  const ScrubOptions fast{.bytes_per_second_max = 0};
  Result<CheckReport> report = world.cache().scrub(context, fast);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->objects, 2u);
  EXPECT_EQ(report->bytes, large.size() + small.size());
  EXPECT_EQ(report->bad_units, 0u);

  const std::string digest = large.digest().to_text();
  auto data = world.memory_disk.open(
      "/cache/objects/" + digest.substr(0, 2) + "/" + digest + ".data", OpenMode::kReadWrite);
  ASSERT_TRUE(data);
  ASSERT_TRUE((*data)->write_at(kMiB, as_bytes("flipped")).ok());
  report = world.cache().scrub(context, fast);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->bad_units, 1u);
  EXPECT_EQ(world.bad_units(CacheDamage::kScrubbed), 1u);
  EXPECT_TRUE(world.reads_right(large)) << "fetched again";
}

}  // namespace
}  // namespace millrace
