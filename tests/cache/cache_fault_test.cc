// Every call to the disk and to the store fails once, and from then on for ever: the first, the
// second, the third, until there is none left. Whatever fails, no read gets a wrong byte, a failing
// disk fails no read at all, and when the faults are over everything works as before.

#include <atomic>
#include <cerrno>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/cache/cache_simulation_world.h"
#include "tests/cache/cache_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

// Under a sanitizer some calls must do for all.
constexpr std::uint64_t kCallStep = kSanitized ? 7 : 1;

// A start asks the same of 256 directories. Three of them tell as much as all.
bool is_telling(const DiskCall& call) {
  constexpr std::string_view kFans = "/cache/objects/";
  if (call.operation != DiskOperation::kList || !call.path.starts_with(kFans)) return true;
  const std::string_view fan = call.path.substr(kFans.size());
  return fan == "00" || fan == "7f" || fan == "ff";
}

struct NthFault {
  std::uint64_t call = 0;
  int error = EIO;
  bool for_ever = false;

  DiskFault fault() const {
    return [*this, seen = std::make_shared<std::uint64_t>(0),
            dead = std::make_shared<bool>(false)](const DiskCall& disk_call) {
      if (*dead) return error;
      if (!is_telling(disk_call) || (*seen)++ != call) return 0;
      *dead = for_ever;
      return error;
    };
  }
  std::string describe() const {
    return fmt::format("call {}{} fails with {}", call, for_ever ? " and all after it" : "",
                       error == EIO ? "EIO" : "ENOSPC");
  }
};

// All objects fit, and hardly anything beside them: what is counted twice or never given back
// shows.
constexpr std::uint64_t kJustEnough = 2'900'000;

class FaultedWorld : public SimulationWorld {
 public:
  explicit FaultedWorld(std::uint64_t quota_bytes = kJustEnough)
      : SimulationWorld({.quota_bytes = quota_bytes, .segment_bytes_max = 200 * kKiB}) {
    objects = {add("tiny", 3000, false), add("small", 100'000, true),
               add("units", 3 * kUnitBytes + 1, false), add("large", kMiB + 70'000, true),
               add("larger", kMiB + 400'000, false)};
  }

  void start_well() { ASSERT_TRUE(start().ok()); }
  void expect_all_right() {
    for (const SimulatedObject& object : objects) {
      EXPECT_TRUE(reads_right(object)) << object.version.key().value();
    }
  }
  void fill_and_stop() {
    start_well();
    expect_all_right();
    stop();
  }

  std::vector<SimulatedObject> objects;
};

struct Scenario {
  std::string name;
  std::function<void(FaultedWorld&)> prepare;
  std::function<void(FaultedWorld&)> act;
  std::uint64_t quota_bytes = kJustEnough;
};

void start_and_read(FaultedWorld& world) {
  if (!world.start().ok()) return;
  world.expect_all_right();
  world.drain();
}

std::vector<Scenario> scenarios() {
  constexpr std::uint64_t kTight = 2 * kMiB;
  const auto fill = [](FaultedWorld& world) { world.fill_and_stop(); };
  const auto fill_and_start = [](FaultedWorld& world) {
    world.start_well();
    world.expect_all_right();
    world.drain();
  };
  return {
      {"open on an empty disk", [](FaultedWorld&) {}, start_and_read},
      {"open on a filled disk", fill, start_and_read},
      {"cold reads", [](FaultedWorld& world) { world.start_well(); },
       [](FaultedWorld& world) { world.expect_all_right(); }},
      {"warm reads", fill_and_start, [](FaultedWorld& world) { world.expect_all_right(); }},
      {"reads after a restart",
       [](FaultedWorld& world) {
         world.fill_and_stop();
         world.start_well();
         world.drain();
       },
       [](FaultedWorld& world) { world.expect_all_right(); }},
      {"eviction", fill_and_start,
       [](FaultedWorld& world) {
         world.expect_all_right();
         world.expect_all_right();
       },
       kTight},
      {"eviction of what was there at the start",
       [](FaultedWorld& world) {
         world.fill_and_stop();
         world.start_well();
         world.drain();
       },
       [](FaultedWorld& world) {
         world.expect_all_right();
         world.expect_all_right();
       },
       kTight},
      {"drop", fill_and_start,
       [](FaultedWorld& world) {
         for (const SimulatedObject& object : world.objects)
           (void)world.cache().drop(RequestContext::background(), object.version);
         world.expect_all_right();
       }},
  };
}

// With the faults over, all is right, now and after a restart; and if there is room for all of it,
// it is read from the disk. What a torn write has left is found, and fetched once more.
void expect_recovered(FaultedWorld& world) {
  for (int restarts = 0; restarts < 2; ++restarts) {
    if (!world.started()) world.start_well();
    if (::testing::Test::HasFatalFailure()) return;
    world.drain();
    world.clock.advance(std::chrono::seconds(11));
    // The second time for what had to go while an unreadable copy was replaced.
    for (int reads = 0; reads < 2; ++reads) {
      world.expect_all_right();
      world.drain();
    }
    const std::uint64_t gets = world.gets();
    world.expect_all_right();
    if (world.options.quota_bytes == kJustEnough) {
      EXPECT_EQ(world.gets(), gets);
    } else {
      world.drain();
      EXPECT_LE(world.cache().usage().used_bytes, world.options.quota_bytes);
    }
    world.stop();
  }
}

// False when the scenario has no such call.
bool survives(const Scenario& scenario, const NthFault& nth) {
  SCOPED_TRACE(scenario.name + ": " + nth.describe());
  FaultedWorld world(scenario.quota_bytes);
  scenario.prepare(world);
  const std::uint64_t faults_before = world.disk.faults();
  world.disk.set_fault(nth.fault());
  scenario.act(world);
  world.disk.set_fault({});
  expect_recovered(world);
  return world.disk.faults() > faults_before;
}

TEST(CacheFaults, EveryDiskCallMayFail) {
  LogCapture quiet(LogLevel::kOff);
  for (const Scenario& scenario : scenarios()) {
    for (const bool for_ever : {false, true}) {
      std::uint64_t call = 0;
      while (survives(scenario, {call, for_ever ? ENOSPC : EIO, for_ever})) {
        if (::testing::Test::HasFailure()) return;
        call += kCallStep;
      }
      EXPECT_GT(call, 3U) << scenario.name << " makes too few calls to mean something";
    }
  }
}

// The first fault leaves something torn behind, the second one hits the start that finds it.
TEST(CacheFaults, EveryDiskCallMayFailWhileRecovering) {
  LogCapture quiet(LogLevel::kOff);
  for (std::uint64_t before = 0; before < 70; before += 14) {
    const Scenario scenario{fmt::format("after a fault at call {}", before),
                            [=](FaultedWorld& world) {
                              world.disk.set_fault(NthFault{before, EIO, true}.fault());
                              start_and_read(world);
                              if (world.started()) world.stop();
                              world.disk.set_fault({});
                            },
                            start_and_read};
    for (const bool for_ever : {false, true}) {
      std::uint64_t call = 0;
      while (survives(scenario, {call, EIO, for_ever})) {
        if (::testing::Test::HasFailure()) return;
        call += kCallStep;
      }
      EXPECT_GT(call, 10U);
    }
  }
}

// A read fails with the store's failure or succeeds; the next one is right.
TEST(CacheFaults, EveryStoreCallMayFail) {
  LogCapture quiet(LogLevel::kOff);
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kFailAfter,
                                 Fault::Kind::kThrottle, Fault::Kind::kHang}) {
    for (const bool for_ever : {false, true}) {
      bool faulted = true;
      for (std::uint64_t number = 1; faulted; ++number) {
        SCOPED_TRACE(fmt::format("call {}, kind {}", number, static_cast<int>(kind)));
        FaultedWorld world;
        world.start_well();
        faulted = false;
        world.store->set_plan([&](const FaultableCall& call) -> std::optional<Fault> {
          if (for_ever ? call.number < number : call.number != number) return std::nullopt;
          faulted = true;
          return Fault{.kind = kind};
        });
        for (const SimulatedObject& object : world.objects) {
          const Result<Slice> got = world.read(object, {0, object.version.size()});
          if (got) {
            EXPECT_EQ(got->text(), object.data.text());
          } else {
            EXPECT_TRUE(faulted);
            const StatusCode expected = kind == Fault::Kind::kHang ? StatusCode::kDeadlineExceeded
                                        : kind == Fault::Kind::kThrottle ? StatusCode::kThrottled
                                                                         : StatusCode::kUnavailable;
            EXPECT_EQ(got.error().code(), expected) << got.error().to_string();
          }
        }
        world.store->set_plan(no_faults());
        expect_recovered(world);
        if (::testing::Test::HasFailure()) return;
      }
    }
  }
}

// All else of the read may be over while its caller still deals with the cancelled answer.
TEST(CacheFaults, ACancelledReadMayEndInsideItsCancellation) {
  FaultedWorld world;
  world.start_well();
  const SimulatedObject& object = world.objects.back();
  world.store->set_plan(fault_nth_call(1, {.kind = Fault::Kind::kHang}));
  const RequestContext context = RequestContext::background();
  int answers = 0;
  world.cache().read(context, object.version, {0, object.version.size()},
                     Completion<Slice>(inline_executor(), [&](const Result<Slice>& result) {
                       ++answers;
                       EXPECT_EQ(result.error().code(), StatusCode::kCancelled);
                       world.drain();
                     }));
  while (world.disk_executor.run_one() || world.fetch_executor.run_one()) {
  }
  context.cancellation().request();
  EXPECT_EQ(answers, 1);
  world.stop();
}

TEST(CacheFaults, ClosingAnswersEveryRead) {
  CacheWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion large = world.add("large", 8 * kMiB);
  const ObjectVersion small = world.add("small", 1000);
  // Half of the answers never come.
  world.store->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.number % 2 == 0) return std::nullopt;
    return Fault{.kind = Fault::Kind::kHang};
  });
  std::atomic<int> answers = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const ObjectVersion& object = i % 10 == 0 ? small : large;
    const ByteRange range{i * 70'000 % object.size(), 300'000};
    const std::string_view wanted =
        std::string_view(world.content(object)).substr(range.offset, range.length);
    world.cache().read(RequestContext::background(), object, range,
                       Completion<Slice>(inline_executor(), [&, wanted](const auto& result) {
                         ++answers;
                         if (result) {
                           EXPECT_TRUE(result->text() == wanted);
                         } else {
                           EXPECT_EQ(result.error().code(), StatusCode::kCancelled);
                         }
                       }));
  }
  world.stop();
  EXPECT_EQ(answers, 100);
  EXPECT_EQ(world.buffers().bytes_in_use(), 0u);
}

// Each holds what it has fetched, and needs as much again for its answer.
TEST(CacheLimits, ReadsThatTogetherNeedMoreMemoryThanThereIsAllEnd) {
  SimulationWorld world({.seed = 1, .memory_bytes_max = 40 * kMiB});
  ASSERT_TRUE(world.start().ok());
  std::vector<SimulatedObject> objects;
  int answers = 0;
  for (int i = 0; i < 16; ++i) {
    objects.push_back(world.add(fmt::format("object-{}", i), 8 * kMiB, false));
    world.cache().read(RequestContext::background(), objects.back().version, {0, 8 * kMiB},
                       Completion<Slice>(inline_executor(), [&, data = objects.back().data](
                                                                const Result<Slice>& result) {
                         ++answers;
                         EXPECT_TRUE(result && result->text() == data.text());
                       }));
  }
  for (int steps = 0; answers < 16; ++steps) {
    ASSERT_TRUE(world.step());
    ASSERT_LT(steps, 100'000) << "they wait for each other's memory";
  }
  world.stop();
}

// Most of what the disk has is the cache's own, which a start does not know before it has looked.
TEST(CacheLimits, ARestartOnANearlyFullDiskKeepsTheCache) {
  SimulationWorld world({.seed = 3, .disk_bytes = 40 * kMiB, .quota_bytes = 32 * kMiB});
  ASSERT_TRUE(world.start().ok());
  const SimulatedObject large = world.add("large", 30 * kMiB, false);
  const SimulatedObject small = world.add("small", 50'000, false);
  const SimulatedObject another = world.add("another", 50'000, false);
  EXPECT_TRUE(world.reads_right(large));
  EXPECT_TRUE(world.reads_right(small));
  world.stop();
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(another));
  world.drain();
  EXPECT_GE(world.cache().usage().used_bytes, 30 * kMiB);
  EXPECT_EQ(world.metrics.counter(MetricId::kCacheEvictedBlocks).value(), 0u);
  world.stop();
}

// A kill in the middle of an eviction leaves data without a map, which no reader asks for again.
TEST(CacheLimits, DataThatNobodyCanFindIsRemovedAtAStart) {
  LogCapture quiet(LogLevel::kOff);
  SimulationWorld world;
  const SimulatedObject object = world.add("object", 8 * kMiB, false);
  ASSERT_TRUE(world.start().ok());
  EXPECT_TRUE(world.reads_right(object));
  world.drain();
  world.disk.set_fault([](const DiskCall& call) {
    return call.operation == DiskOperation::kRemove && call.path.ends_with(".data") ? EIO : 0;
  });
  EXPECT_FALSE(world.cache().drop(RequestContext::background(), object.version).ok());
  world.disk.set_fault({});
  world.stop();
  ASSERT_EQ(world.data_bytes_on_disk(), object.version.size());
  ASSERT_TRUE(world.start().ok());
  world.drain();
  EXPECT_EQ(world.data_bytes_on_disk(), 0u);
  EXPECT_EQ(world.cache().usage().used_bytes, 0u);
  EXPECT_TRUE(world.reads_right(object));
  world.stop();
}

}  // namespace
}  // namespace millrace
