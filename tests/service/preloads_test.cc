#include "service/preloads.h"

#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/units.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

constexpr std::size_t kLargeBytes = 3 * kMiB + 100;
constexpr std::size_t kSmallBytes = 40 * kKiB;

class PreloadsTest : public ::testing::Test {
 protected:
  // Two large files, and 20 small ones in packs.
  void publish(ServiceWorld& world, const std::string& ref, std::uint64_t seed) {
    world.tree.write("train/large.bin", publish_bytes(kLargeBytes, seed));
    world.tree.write("val/large.bin", publish_bytes(kLargeBytes, seed + 1));
    for (std::uint64_t n = 0; n < 20; ++n) {
      const std::string name = (n < 10 ? "train/" : "val/") + std::to_string(n) + ".jpg";
      world.tree.write(name, publish_bytes(kSmallBytes, seed * 100 + n));
    }
    const auto published = world.publish(ref);
    ASSERT_TRUE(published) << published.error().to_string();
    world.recording->clear();
  }
  static PreloadRequest request(const std::string& ref) {
    return {.version = VersionRef::parse(ref).value()};
  }
  static std::map<std::string, std::string> read_all(ServiceWorld& world, const std::string& path) {
    std::map<std::string, std::string> found;
    world.walk(world.at(path).number, "", found);
    return found;
  }
};

TEST_F(PreloadsTest, WhatIsReadyNeedsNoStore) {
  ServiceWorld world;
  publish(world, "a@v1", 1);
  const Result<PreloadInfo> started = world.preloads().start(world.context, request("a@v1"));
  ASSERT_TRUE(started) << started.error().to_string();
  EXPECT_EQ(started->files, 22u);
  EXPECT_TRUE(started->fit.fits());
  EXPECT_EQ(started->fit.cached_bytes, 0u);
  const PreloadInfo ready = world.ended(started->id);
  EXPECT_EQ(ready.state, PreloadState::kReady);
  EXPECT_EQ(ready.bytes_done, ready.bytes_total);
  EXPECT_GE(ready.bytes_total, 2 * kLargeBytes + 20 * kSmallBytes);
  EXPECT_EQ(world.object_gets().bytes, ready.bytes_total);
  // All of it was fetched behind readers.
  EXPECT_EQ(
      world.metrics()
          .counter(MetricId::kCacheFetchedBytes, {static_cast<std::size_t>(Urgency::kSpeculative)})
          .value(),
      ready.bytes_total);

  const std::map<std::string, std::string> wanted = world.contents("a@v1");
  world.break_objects(Fault::Kind::kFailBefore);
  EXPECT_EQ(read_all(world, "datasets/a/v1"), wanted);
}

TEST_F(PreloadsTest, FetchesOnlyWhatWasChosen) {
  ServiceWorld world;
  publish(world, "a@v1", 2);
  PreloadRequest chosen = request("a@v1");
  chosen.paths = {"val/*.jpg"};
  const PreloadInfo ready = world.ended(world.preloads().start(world.context, chosen)->id);
  EXPECT_EQ(ready.state, PreloadState::kReady);
  EXPECT_EQ(ready.files, 10u);
  // Packs are small here, and come whole.
  EXPECT_GE(ready.bytes_total, 10 * kSmallBytes);
  EXPECT_LT(ready.bytes_total, kLargeBytes);
  world.break_objects(Fault::Kind::kFailBefore);
  EXPECT_TRUE(world.read(world.at("datasets/a/v1/val/15.jpg").number, {0, kSmallBytes}));
  EXPECT_FALSE(world.read(world.at("datasets/a/v1/val/large.bin").number, {0, 100}));

  chosen.paths = {"val/*.jpg", "test/**"};
  const Result<PreloadInfo> nothing = world.preloads().start(world.context, chosen);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code(), StatusCode::kNotFound);
  EXPECT_NE(nothing.error().message().find("'test/**'"), std::string::npos);
  chosen.paths = {"["};
  EXPECT_EQ(world.preloads().start(world.context, chosen).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(world.preloads().start(world.context, request("a@v9")).error().code(),
            StatusCode::kNotFound);
}

TEST_F(PreloadsTest, SaysByHowMuchItDoesNotFit) {
  ServiceWorld world(5 * kMiB);
  publish(world, "a@v1", 3);
  const Result<PreloadInfo> refused = world.preloads().start(world.context, request("a@v1"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);
  const std::string& why = refused.error().message();
  EXPECT_NE(why.find("the cache may hold 5 MiB"), std::string::npos) << why;
  EXPECT_NE(why.find("too little"), std::string::npos) << why;
  EXPECT_EQ(world.object_gets().requests, 0u);
  EXPECT_TRUE(world.preloads().list().empty());

  PreloadRequest part = request("a@v1");
  part.what_fits = true;
  part.lease = std::chrono::hours(1);
  const Result<PreloadInfo> taken = world.preloads().start(world.context, part);
  ASSERT_TRUE(taken) << taken.error().to_string();
  EXPECT_FALSE(taken->fit.fits());
  EXPECT_GE(taken->fit.short_bytes, taken->fit.wanted_bytes - 5 * kMiB);
  const PreloadInfo ready = world.ended(taken->id);
  EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  EXPECT_GE(ready.bytes_total, kLargeBytes);
  EXPECT_LE(ready.bytes_total, 5 * kMiB);
}

TEST_F(PreloadsTest, ALeaseHoldsAgainstReaders) {
  ServiceWorld world(12 * kMiB);
  publish(world, "a@v1", 4);
  publish(world, "b@v1", 5);
  PreloadRequest leased = request("a@v1");
  leased.lease = std::chrono::hours(12);
  const PreloadInfo ready = world.ended(world.preloads().start(world.context, leased)->id);
  ASSERT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  ASSERT_TRUE(world.preloads().find(ready.id)->leased_until);
  // Nothing that was promised to one is promised to another.
  PreloadRequest second = request("b@v1");
  second.lease = std::chrono::hours(1);
  const Result<PreloadInfo> refused = world.preloads().start(world.context, second);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kResourceExhausted);

  for (int pass = 0; pass < 3; ++pass)
    read_all(world, "datasets/b/v1");
  EXPECT_EQ(world.cached_bytes("a@v1"), ready.bytes_total);
  ASSERT_TRUE(world.preloads().cancel(world.context, ready.id));
  EXPECT_FALSE(world.preloads().find(ready.id)->leased_until);
  EXPECT_TRUE(world.cache().leases().list().empty());
  EXPECT_EQ(world.ended(world.preloads().start(world.context, second)->id).state,
            PreloadState::kReady);
  EXPECT_LT(world.cached_bytes("a@v1"), ready.bytes_total);
}

TEST_F(PreloadsTest, WhoWantsTheSameJoins) {
  ServiceWorld world(8 * kMiB);
  publish(world, "a@v1", 6);
  PreloadRequest leased = request("a@v1");
  leased.lease = std::chrono::hours(1);
  const Result<PreloadInfo> first = world.preloads().start(world.context, leased);
  ASSERT_TRUE(first) << first.error().to_string();
  const PreloadInfo ready = world.ended(first->id);
  ASSERT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  const WallTime until = *world.preloads().find(ready.id)->leased_until;
  leased.lease = std::chrono::hours(2);
  const Result<PreloadInfo> second = world.preloads().start(world.context, leased);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_EQ(second->id, ready.id);
  EXPECT_GT(*world.preloads().find(ready.id)->leased_until, until);
  leased.lease = std::chrono::minutes(1);
  ASSERT_TRUE(world.preloads().start(world.context, leased));
  EXPECT_GT(*world.preloads().find(ready.id)->leased_until, until) << "it is never shortened";
  EXPECT_EQ(world.preloads().list().size(), 1u);
}

TEST_F(PreloadsTest, GoesOnAfterARestartAndFetchesNothingTwice) {
  ServiceWorld world;
  publish(world, "a@v1", 7);
  const std::map<std::string, std::string> wanted = world.contents("a@v1");
  // Some of it is there already.
  ASSERT_TRUE(world.read(world.at("datasets/a/v1/train/large.bin").number, {0, kLargeBytes}));
  world.restart();  // What was read is on the disk then.
  world.recording->clear();
  world.break_objects(Fault::Kind::kFailBefore);
  PreloadRequest leased = request("a@v1");
  leased.lease = std::chrono::hours(1);
  leased.holder = {.principal = "uid:7", .run = "r"};
  const Result<PreloadInfo> started = world.preloads().start(world.context, leased);
  ASSERT_TRUE(started) << started.error().to_string();
  EXPECT_GE(started->fit.cached_bytes, kLargeBytes);
  for (int restart = 0; restart < 3; ++restart) {
    world.restart();
    const PreloadInfo waiting = world.preloads().find(started->id).value();
    EXPECT_FALSE(has_ended(waiting.state));
    EXPECT_EQ(waiting.request.holder.principal, "uid:7");
  }
  world.mend();
  const PreloadInfo ready = world.ended(started->id);
  EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  EXPECT_EQ(world.object_gets().bytes, ready.bytes_total - started->fit.cached_bytes);
  world.restart();
  EXPECT_EQ(world.preloads().find(started->id)->state, PreloadState::kReady);
  EXPECT_TRUE(world.preloads().find(started->id)->leased_until);
  world.break_objects(Fault::Kind::kFailBefore);
  EXPECT_EQ(read_all(world, "datasets/a/v1"), wanted);
}

TEST_F(PreloadsTest, TheGateOpensWhenItIsReadyOrTimeIsUp) {
  ServiceWorld world;
  publish(world, "a@v1", 8);
  world.break_objects(Fault::Kind::kFailBefore);
  const PreloadId id = world.preloads().start(world.context, request("a@v1"))->id;
  Waiter<PreloadInfo> at_once;
  Waiter<PreloadInfo> soon;
  Waiter<PreloadInfo> in_the_end;
  Waiter<PreloadInfo> called_off;
  const auto cancellation = std::make_shared<Cancellation>();
  const auto until = [&](Duration time) {
    return world.context.with_deadline(system_clock().now() + time);
  };
  world.preloads().wait(until({}), id, at_once.completion());
  world.preloads().wait(until(std::chrono::milliseconds(20)), id, soon.completion());
  world.preloads().wait(until(std::chrono::hours(1)), id, in_the_end.completion());
  world.preloads().wait(world.context.with_cancellation(cancellation), id, called_off.completion());
  cancellation->request();
  EXPECT_FALSE(has_ended(called_off.wait()->state));
  EXPECT_FALSE(has_ended(at_once.wait()->state));
  EXPECT_FALSE(has_ended(soon.wait()->state));
  world.mend();
  EXPECT_EQ(in_the_end.wait()->state, PreloadState::kReady);
  Waiter<PreloadInfo> after;
  world.preloads().wait(world.context, id, after.completion());
  EXPECT_EQ(after.wait()->state, PreloadState::kReady);
  Waiter<PreloadInfo> nobody;
  world.preloads().wait(world.context, PreloadId("000000000000"), nobody.completion());
  EXPECT_EQ(nobody.wait().error().code(), StatusCode::kNotFound);
}

TEST_F(PreloadsTest, ACancelledOneEndsAtOnceWhateverTheStoreDoes) {
  ServiceWorld world;
  publish(world, "a@v1", 9);
  world.break_objects(Fault::Kind::kHang);
  PreloadRequest leased = request("a@v1");
  leased.lease = std::chrono::hours(1);
  const PreloadId running = world.preloads().start(world.context, leased)->id;
  PreloadRequest second = request("a@v1");
  second.paths = {"val/**"};
  const PreloadId queued = world.preloads().start(world.context, second)->id;
  Waiter<PreloadInfo> gate;
  world.preloads().wait(world.context, running, gate.completion());
  EXPECT_EQ(world.preloads().cancel(world.context, queued)->state, PreloadState::kCancelled);
  EXPECT_EQ(world.preloads().cancel(world.context, running)->state, PreloadState::kCancelled);
  EXPECT_EQ(gate.wait()->state, PreloadState::kCancelled);
  // Its thread is free again, and has left no lease.
  world.mend();
  const PreloadId third = world.preloads().start(world.context, second)->id;
  EXPECT_EQ(world.preloads().cancel(world.context, third)->state, PreloadState::kCancelled);
  world.restart();
  EXPECT_TRUE(world.cache().leases().list().empty());
  EXPECT_EQ(world.preloads().find(running)->state, PreloadState::kCancelled);
}

TEST_F(PreloadsTest, WhoeverWaitsIsToldWhenTheGatewayStops) {
  ServiceWorld world;
  publish(world, "a@v1", 10);
  world.break_objects(Fault::Kind::kHang);
  const PreloadId id = world.preloads().start(world.context, request("a@v1"))->id;
  Waiter<PreloadInfo> gate;
  world.preloads().wait(world.context, id, gate.completion());
  world.restart();
  EXPECT_EQ(gate.wait().error().code(), StatusCode::kCancelled);
}

TEST_F(PreloadsTest, AFailureSaysWhyAndHoldsNothing) {
  ServiceWorld world;
  publish(world, "a@v1", 11);
  for (const std::string& key : world.keys("a/v1/"))
    ASSERT_TRUE(world.memory->remove(world.context, std::vector{ObjectKey(key)}).ok());
  PreloadRequest leased = request("a@v1");
  leased.lease = std::chrono::hours(1);
  const PreloadInfo failed = world.ended(world.preloads().start(world.context, leased)->id);
  EXPECT_EQ(failed.state, PreloadState::kFailed);
  EXPECT_NE(failed.problem.find("not_found"), std::string::npos) << failed.problem;
  EXPECT_EQ(failed.code, StatusCode::kNotFound);
  world.restart();
  EXPECT_EQ(world.preloads().find(failed.id)->code, StatusCode::kNotFound);
  EXPECT_TRUE(world.cache().leases().list().empty());
}

TEST_F(PreloadsTest, ItsFetchesArePaidByWhoAskedForIt) {
  ServiceWorld world;
  publish(world, "a@v1", 12);
  PreloadRequest paid = request("a@v1");
  paid.holder = {.principal = "uid:5", .run = "run-1"};
  const PreloadInfo ready = world.ended(world.preloads().start(world.context, paid)->id);
  ASSERT_EQ(ready.state, PreloadState::kReady);
  const std::vector<UsageRow> rows = world.usage().rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].key, (UsageKey{"a@v1", "uid:5", "run-1"}));
  EXPECT_EQ(rows[0].counts.fetched_bytes, ready.bytes_total);
  EXPECT_EQ(rows[0].counts.fetches, world.object_gets().requests);
  EXPECT_EQ(rows[0].counts.reads, 0u);
}

TEST_F(PreloadsTest, EndedOnesAreForgottenInTime) {
  ServiceWorld world;
  publish(world, "a@v1", 13);
  for (int n = 0; n < 105; ++n)
    world.ended(world.preloads().start(world.context, request("a@v1"))->id);
  EXPECT_EQ(world.preloads().list().size(), 100u);
  EXPECT_EQ(world.disk().list("/state/preloads")->size(), 100u);
}

}  // namespace
}  // namespace millrace
