// Preloads whose store is away, and those that wait behind them.

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/units.h"
#include "service/preloads.h"
#include "tests/service/service_world.h"

namespace millrace {
namespace {

constexpr std::size_t kWaitingBytes = 12 * kMiB;

class PreloadsWaitingTest : public ::testing::Test {
 protected:
  PreloadsWaitingTest() {
    for (const std::string name : {"a", "b", "c"}) {
      world.tree.write("large.bin", publish_bytes(kWaitingBytes, name[0]));
      EXPECT_TRUE(world.publish(name + "@v1"));
    }
    world.preload_options.pause_max = std::chrono::milliseconds(2);
    world.preload_options.patience = std::chrono::milliseconds(20);
    world.restart();
  }
  ~PreloadsWaitingTest() override { world.stop_all(); }

  PreloadId start(const std::string& name, bool is_leased, std::uint64_t rate_max = 0) {
    PreloadRequest request{.version = VersionRef::parse(name + "@v1").value(),
                           .bytes_per_second_max = rate_max};
    if (is_leased) request.lease = std::chrono::hours(1);
    const Result<PreloadInfo> started = world.preloads().start(world.context, request);
    EXPECT_TRUE(started) << started.error().to_string();
    return started->id;
  }
  PreloadInfo info(const PreloadId& id) { return world.preloads().find(id).value(); }
  static bool comes_true(const std::function<bool()>& condition) {
    const TimePoint deadline = system_clock().now() + std::chrono::minutes(1);
    while (!condition()) {
      if (system_clock().now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  // Room for all three, or for one.
  ServiceWorld world{64 * kMiB};
};

TEST_F(PreloadsWaitingTest, OneWhoseStoreIsAwayHoldsUpNobody) {
  world.break_objects(Fault::Kind::kFailBefore, "a/");
  const PreloadId away = start("a", true);
  const PreloadId second = start("b", true);
  const PreloadId third = start("c", false);
  EXPECT_EQ(world.ended(second).state, PreloadState::kReady);
  EXPECT_EQ(world.ended(third).state, PreloadState::kReady);
  const PreloadInfo waiting = info(away);
  EXPECT_FALSE(has_ended(waiting.state));
  EXPECT_TRUE(waiting.leased_until) << "its room is kept";
  // Nobody waits any more: its turn comes, and lasts until the store is there.
  ASSERT_TRUE(comes_true([&] {
    const PreloadInfo now = info(away);
    return now.state == PreloadState::kRunning && !now.problem.empty();
  }));
  world.mend();
  EXPECT_EQ(world.ended(away).state, PreloadState::kReady);
  EXPECT_TRUE(info(away).leased_until);
}

// At this rate it is a year until the second block's turn.
TEST_F(PreloadsWaitingTest, OneThatMayFetchLittleHoldsUpNobodyEither) {
  world.break_objects(Fault::Kind::kFailBefore, "a/");
  start("a", true, 1);
  EXPECT_EQ(world.ended(start("b", true)).state, PreloadState::kReady);
}

TEST_F(PreloadsWaitingTest, WhoGaveWaySaysWhy) {
  world.break_objects(Fault::Kind::kFailBefore);
  const PreloadId first = start("a", true);
  const PreloadId second = start("b", true);
  for (const PreloadId& id : {first, second, first}) {
    ASSERT_TRUE(comes_true([&] {
      const PreloadInfo now = info(id);
      return now.state == PreloadState::kQueued && now.problem.starts_with("others go first: ") &&
             now.problem.contains("unavailable");
    })) << info(id).problem;
  }
  // Whoever is cancelled then does not come back.
  EXPECT_EQ(world.preloads().cancel(world.context, first)->state, PreloadState::kCancelled);
  world.mend();
  EXPECT_EQ(world.ended(second).state, PreloadState::kReady);
  EXPECT_EQ(info(first).state, PreloadState::kCancelled);
  EXPECT_EQ(world.cache().leases().list().size(), 1U);
}

TEST_F(PreloadsWaitingTest, WithoutALeaseItsRoomIsGivenToo) {
  world.cache_bytes = 16 * kMiB;
  world.restart();
  // Two of its three blocks come.
  std::atomic<int> gets = 0;
  world.faulty->set_plan([&gets](const FaultableCall& call) -> std::optional<Fault> {
    const bool is_of_a = call.operation == StoreOperation::kGetRange && call.key.starts_with("a/");
    if (!is_of_a || ++gets <= 2) return std::nullopt;
    return Fault{.kind = Fault::Kind::kFailBefore};
  });
  const PreloadId away = start("a", false);
  const PreloadId next = start("b", false);
  const PreloadInfo ready = world.ended(next);
  EXPECT_EQ(ready.state, PreloadState::kReady) << ready.problem;
  EXPECT_EQ(world.cached_bytes("b@v1"), ready.bytes_total);
  world.mend();
  const PreloadInfo late = world.ended(away);
  EXPECT_EQ(late.state, PreloadState::kReady) << late.problem;
  EXPECT_EQ(world.cached_bytes("a@v1"), late.bytes_total);
}

// Not even what is in the version can be asked for then.
TEST_F(PreloadsWaitingTest, AStoreThatIsAwayAfterARestartIsWaitedFor) {
  world.break_objects(Fault::Kind::kFailBefore);
  const PreloadId first = start("a", true);
  const PreloadId second = start("b", true);
  world.stop_all();
  std::filesystem::remove_all(world.state.path("opened"));
  world.faulty->set_plan([](const FaultableCall&) -> std::optional<Fault> {
    return Fault{.kind = Fault::Kind::kFailBefore};
  });
  world.restart();
  for (const PreloadId& id : {first, second}) {
    ASSERT_TRUE(comes_true([&] { return info(id).problem.starts_with("others go first: "); }))
        << info(id).problem;
  }
  world.mend();
  EXPECT_EQ(world.ended(first).state, PreloadState::kReady);
  EXPECT_EQ(world.ended(second).state, PreloadState::kReady);
}

// Where the objects should be there is nothing, and who knows where they are now is away. Each try
// begins anew, and yet all of them are one wait.
TEST_F(PreloadsWaitingTest, OneThatBeginsAgainAndAgainHoldsUpNobody) {
  for (const char* const name : {"datasets/a/v1", "datasets/b/v1"})
    EXPECT_EQ(world.at(name).kind, NodeKind::kDirectory);
  world.faulty->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.key.starts_with(".millrace")) return Fault{.kind = Fault::Kind::kFailBefore};
    if (!call.key.starts_with("a/")) return std::nullopt;
    return Fault{.kind = Fault::Kind::kFailBefore, .code = StatusCode::kNotFound};
  });
  const PreloadId lost = start("a", true);
  EXPECT_EQ(world.ended(start("b", true)).state, PreloadState::kReady);
  EXPECT_FALSE(has_ended(info(lost).state));
}

}  // namespace
}  // namespace millrace
