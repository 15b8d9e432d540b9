// A preload keeps what it fetches while it runs, and what it was promised while it waits.

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/units.h"
#include "service/preload_run.h"
#include "service/preloads.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

PreloadRequest of(const std::string& ref) { return {.version = VersionRef::parse(ref).value()}; }

PreloadRequest leased(const std::string& ref, Duration lease = hours(1)) {
  PreloadRequest request = of(ref);
  request.lease = lease;
  return request;
}

void publish_large(ServiceWorld& world, const std::string& ref, std::size_t bytes,
                   std::uint64_t seed) {
  world.tree.write("large.bin", publish_bytes(bytes, seed));
  const auto published = world.publish(ref);
  ASSERT_TRUE(published) << published.error().to_string();
}

bool comes_true(const std::function<bool()>& condition) {
  const TimePoint deadline = system_clock().now() + minutes(1);
  while (!condition()) {
    if (system_clock().now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(PreloadsHeldTest, DoesNotPushItselfOutOfAFullCache) {
  ServiceWorld world(48 * kMiB);
  publish_large(world, "b@v1", 44 * kMiB, 1);
  publish_large(world, "a@v1", 44 * kMiB, 2);
  // What is read often has its place.
  for (int pass = 0; pass < 4; ++pass)
    ASSERT_TRUE(world.read(world.at("datasets/b/v1/large.bin").number, {0, 44 * kMiB}));
  const Result<PreloadInfo> started = world.preloads().start(world.context, of("a@v1"));
  ASSERT_TRUE(started) << started.error().to_string();
  const PreloadInfo ready = world.ended(started->id);
  EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  EXPECT_EQ(world.cached_bytes("a@v1"), ready.bytes_total);
  EXPECT_FALSE(ready.leased_until);
  // It is held no longer: another one has the room.
  const PreloadInfo other = world.ended(world.preloads().start(world.context, of("b@v1"))->id);
  EXPECT_EQ(other.state, PreloadState::kReady) << other.problem;
  EXPECT_EQ(world.cached_bytes("b@v1"), other.bytes_total);
}

TEST(PreloadsHeldTest, WithoutALeaseOneAfterTheOtherMayFillTheCache) {
  ServiceWorld world(16 * kMiB);
  publish_large(world, "a@v1", 12 * kMiB, 1);
  publish_large(world, "b@v1", 12 * kMiB, 2);
  world.break_objects(Fault::Kind::kHang);
  const PreloadId first = world.preloads().start(world.context, of("a@v1"))->id;
  ASSERT_TRUE(comes_true([&] { return world.broken_gets > 0; }));
  const Result<PreloadInfo> second = world.preloads().start(world.context, of("b@v1"));
  ASSERT_TRUE(second) << second.error().to_string();
  const Result<PreloadInfo> kept = world.preloads().start(world.context, leased("b@v1"));
  ASSERT_TRUE(kept) << kept.error().to_string();
  for (const PreloadId& id : {first, second->id, kept->id})
    ASSERT_TRUE(world.preloads().cancel(world.context, id));
}

TEST(PreloadsHeldTest, WhatIsLostMeanwhileIsFetchedAgain) {
  ServiceWorld world(64 * kMiB);
  publish_large(world, "a@v1", 12 * kMiB, 1);
  const auto tree = world.datasets().version(world.context, of("a@v1").version).value();
  const PreloadOptions options;
  PreloadRun run({.cache = world.cache(), .clock = system_clock(), .options = options},
                 PreloadId("00000000000a"), of("a@v1"), tree);
  ASSERT_TRUE(run.prepare(world.context).ok());
  ASSERT_TRUE(run.grant(world.context).ok());
  PreloadProgress progress;
  ASSERT_TRUE(run.fetch(world.context, progress).ok());
  EXPECT_TRUE(run.is_cached(world.context).value());
  // As when the disk was full, and the lease was broken.
  const LeaseId lease = PreloadRun::lease_of(PreloadId("00000000000a"));
  ASSERT_TRUE(world.cache().leases().release(world.context, lease).ok());
  const ObjectVersion object = tree->objects()->object(0).value();
  ASSERT_TRUE(world.cache().drop(world.context, object).ok());
  EXPECT_FALSE(run.is_cached(world.context).value());
  ASSERT_TRUE(run.fetch(world.context, progress).ok());
  EXPECT_TRUE(run.is_cached(world.context).value());
  EXPECT_EQ(world.cache().drop(world.context, object).code(), StatusCode::kConflict);
}

// The lease of an hour lasts however long it takes until the preload's turn, and the store's.
TEST(PreloadsHeldTest, LeasesLastAsLongAsThePreloadsDo) {
  ManualClock time;
  ServiceWorld world(64 * kMiB);
  world.cache_clock = &time;
  world.restart();
  publish_large(world, "a@v1", 4 * kMiB, 1);
  publish_large(world, "b@v1", 4 * kMiB, 2);
  world.break_objects(Fault::Kind::kHang);
  const PreloadId running = world.preloads().start(world.context, leased("a@v1"))->id;
  const PreloadId queued = world.preloads().start(world.context, leased("b@v1", minutes(10)))->id;
  const auto are_leased = [&] {
    const std::vector<LeaseInfo> leases = world.cache().leases().list();
    return leases.size() == 2 && std::ranges::all_of(leases, [&](const LeaseInfo& lease) {
             return lease.expires >= time.wall_now() + hours(1);
           });
  };
  for (int n = 0; n < 36; ++n) {
    time.advance(minutes(5));
    ASSERT_TRUE(comes_true(are_leased)) << "after " << 5 * n << " minutes";
  }
  for (const PreloadId& id : {running, queued})
    ASSERT_TRUE(world.preloads().cancel(world.context, id));
  world.stop_all();
}

TEST(PreloadsHeldTest, OnceItIsReadyTheLeaseIsWhatWasAskedFor) {
  ServiceWorld world(64 * kMiB);
  publish_large(world, "a@v1", 4 * kMiB, 1);
  const WallTime before = system_clock().wall_now();
  const PreloadInfo ready =
      world.ended(world.preloads().start(world.context, leased("a@v1", minutes(10)))->id);
  ASSERT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  const WallTime until = world.preloads().find(ready.id)->leased_until.value();
  EXPECT_GE(until, before + minutes(10));
  EXPECT_LT(until, before + hours(1));
}

TEST(PreloadsHeldTest, ALeaseOfNoPreloadGoesWithTheNextStart) {
  ServiceWorld world(64 * kMiB);
  publish_large(world, "a@v1", 4 * kMiB, 1);
  const PreloadInfo ready = world.ended(world.preloads().start(world.context, leased("a@v1"))->id);
  // As when the process is killed before the preload is noted.
  const LeaseId orphan = PreloadRun::lease_of(PreloadId("0123456789ab"));
  for (const LeaseId& id : {orphan, LeaseId("job")}) {
    ASSERT_TRUE(world.cache().leases().grant(world.context, {id, "test", hours(1), {}}).ok());
  }
  world.restart();
  std::vector<LeaseId> left;
  for (const LeaseInfo& lease : world.cache().leases().list())
    left.push_back(lease.id);
  EXPECT_EQ(left, (std::vector{LeaseId("job"), PreloadRun::lease_of(ready.id)}));
}

TEST(PreloadsHeldTest, FilesThatShareABlockTakeItOnce) {
  ServiceWorld world(12 * kMiB);
  constexpr int kFiles = 90;
  for (int n = 0; n < kFiles; ++n) {
    world.tree.write(fmt::format("{:02}.{}", n, n % 2 == 0 ? "jpg" : "txt"),
                     publish_bytes(100 * kKiB, n));
  }
  ASSERT_TRUE(world.publish("a@v1"));
  PreloadRequest chosen = leased("a@v1");
  chosen.paths = {"*.jpg"};
  const Result<PreloadInfo> started = world.preloads().start(world.context, chosen);
  ASSERT_TRUE(started) << started.error().to_string();
  EXPECT_LE(started->fit.wanted_bytes, 9 * kMiB);
  const PreloadInfo ready = world.ended(started->id);
  EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  EXPECT_EQ(world.cache().leases().list().front().bytes, started->fit.wanted_bytes);
}

TEST(PreloadsHeldTest, VersionsThatShareObjectsFitBesideEachOther) {
  ServiceWorld world(16 * kMiB);
  publish_large(world, "a@v1", 11 * kMiB, 1);
  const PreloadInfo first = world.ended(world.preloads().start(world.context, leased("a@v1"))->id);
  ASSERT_EQ(first.state, PreloadState::kReady) << first.problem;
  world.tree.write("more.bin", publish_bytes(2 * kMiB, 2));
  ASSERT_TRUE(world.publish("a@v2"));
  const Result<PreloadInfo> second = world.preloads().start(world.context, leased("a@v2"));
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_GE(second->fit.wanted_bytes, 13 * kMiB);
  EXPECT_EQ(second->fit.leased_bytes, 0u);
  EXPECT_EQ(world.ended(second->id).state, PreloadState::kReady);
}

TEST(PreloadsHeldTest, TakesAPartOfAFileWhereNotAllFits) {
  ServiceWorld world(10 * kMiB);
  publish_large(world, "a@v1", 15 * kMiB, 1);
  for (PreloadRequest part : {of("a@v1"), leased("a@v1")}) {
    part.what_fits = true;
    const Result<PreloadInfo> started = world.preloads().start(world.context, part);
    ASSERT_TRUE(started) << started.error().to_string();
    EXPECT_EQ(started->bytes_total, 8 * kMiB);
    EXPECT_EQ(started->fit.short_bytes, started->fit.wanted_bytes - 8 * kMiB);
    const PreloadInfo ready = world.ended(started->id);
    EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
    EXPECT_EQ(world.cached_bytes("a@v1"), 8 * kMiB);
  }
}

TEST(PreloadsHeldTest, AReaderIsAnsweredWhileAPreloadHasAllItsFetchesOut) {
  ServiceWorld world;
  publish_large(world, "b@v1", 4 * kMiB, 1);
  publish_large(world, "a@v1", 160 * kMiB, 2);
  world.break_objects(Fault::Kind::kHang, "a/");
  const PreloadId running = world.preloads().start(world.context, of("a@v1"))->id;
  const std::size_t fetches = PreloadOptions().fetches_max;
  ASSERT_TRUE(comes_true([&] { return world.broken_gets >= fetches; }));
  EXPECT_TRUE(world.read(world.at("datasets/b/v1/large.bin").number, {0, 4 * kMiB}));
  EXPECT_FALSE(has_ended(world.preloads().find(running)->state));
  ASSERT_TRUE(world.preloads().cancel(world.context, running));
}

}  // namespace
}  // namespace millrace
