// Processes of the real program that publish, promote, move aliases, remove and collect at once,
// while they are killed, paused and delayed: on files, on Ceph, and on Ceph behind a proxy that
// breaks some of the requests.

#include <atomic>
#include <mutex>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/dataset/race_world.h"
#include "tests/servers/fault_proxy.h"

namespace millrace {
namespace {

using testing::CephServer;
using ProxyFault = testing::Fault;
using testing::FaultProxy;

constexpr std::uint64_t kRoundsPerWorld = 20;
// The processes wait for the store most of the time.
constexpr std::uint64_t kWorldsAtOnce = 3;

RaceFigures run_races(RaceGround& ground, std::uint64_t seed, std::uint64_t rounds, bool faults) {
  RaceFigures total;
  std::mutex mutex;
  std::atomic<std::uint64_t> next = 0;
  const std::uint64_t worlds = (rounds + kRoundsPerWorld - 1) / kRoundsPerWorld;
  std::vector<std::thread> threads;
  for (std::uint64_t n = 0; n < kWorldsAtOnce; ++n) {
    threads.emplace_back([&] {
      for (std::uint64_t number = next++; number < worlds; number = next++) {
        RaceWorld world(ground, fmt::format("races-{}-{}", seed, number), seed + number, faults);
        for (std::uint64_t i = 0; i < kRoundsPerWorld && !::testing::Test::HasFailure(); ++i)
          world.round();
        world.finish();
        const std::lock_guard lock(mutex);
        total.add(world.figures());
        if (::testing::Test::HasFailure()) return;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return total;
}

// Races in which nothing was hit would prove nothing.
void expect_hits(const RaceFigures& figures, std::uint64_t rounds) {
  EXPECT_GE(figures.rounds, rounds);
  EXPECT_GT(figures.kills, rounds / 4);
  EXPECT_GT(figures.pauses, rounds / 4);
  EXPECT_GT(figures.delays, rounds / 4);
  EXPECT_GT(figures.told, rounds / 2);
  EXPECT_GT(figures.moves, rounds / 4);
  EXPECT_GT(figures.purged, rounds / 10);
  EXPECT_GT(figures.deleted, rounds / 10);
  EXPECT_GT(figures.looks, rounds / 4);
  // Rare: a few rounds may well have none.
  if (rounds < 1000) return;
  EXPECT_GT(figures.sleepers, rounds / 100);
  EXPECT_GT(figures.aborted, rounds / 100);
}

void report_races(const std::string& suite, std::uint64_t seed, const RaceFigures& figures,
                  std::uint64_t faults) {
  report_torture(
      suite, seed,
      fmt::format(R"("races":{},"processes":{},"kills":{},"pauses":{},"sleepers":{},"delays":{},)"
                  R"("faults":{},"told_who_won":{},"alias_moves":{},"aborted":{},"purged":{},)"
                  R"("deleted":{},"looks_meanwhile":{},"given_up":{})",
                  figures.rounds, figures.processes, figures.kills, figures.pauses,
                  figures.sleepers, figures.delays, faults, figures.told, figures.moves,
                  figures.aborted, figures.purged, figures.deleted, figures.looks,
                  figures.failures));
}

TEST(DatasetRaces, OnFiles) {
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  const std::uint64_t rounds = torture_rounds(2'000, 40);
  FileRaceGround ground;
  const RaceFigures figures = run_races(ground, seed, rounds, false);
  expect_hits(figures, rounds);
  report_races("dataset_races_files", seed, figures, 0);
}

TEST(DatasetRaces, OnCeph) {
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  const std::uint64_t rounds = torture_rounds(5'000, 40);
  CephRaceGround ground(CephServer::shared().endpoint());
  const RaceFigures figures = run_races(ground, seed, rounds, false);
  expect_hits(figures, rounds);
  report_races("dataset_races_ceph", seed, figures, 0);
}

TEST(DatasetRaces, OnCephBehindFaults) {
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("MILLRACE_SEED={}", seed));
  const std::uint64_t rounds = torture_rounds(5'000, 40);
  testing::ProxySettings settings;
  settings.drip_bytes_per_second = 100'000;
  FaultProxy proxy(CephServer::shared().endpoint(), settings);
  auto faults = testing::random_faults(seed, 0.05, testing::all_faults({.honest_bytes = true}));
  proxy.set_policy([faults](const testing::ProxiedRequest& request) {
    const ProxyFault fault = faults(request);
    // Nobody can tell a wrong ETag from that of an object that has changed.
    return fault == ProxyFault::kChangedEtag ? ProxyFault::kNone : fault;
  });
  CephRaceGround ground(proxy.endpoint());
  const RaceFigures figures = run_races(ground, seed, rounds, true);
  expect_hits(figures, rounds);
  const std::uint64_t broken = proxy.stats().faults_total();
  EXPECT_GT(broken, rounds);
  report_races("dataset_races_faults", seed, figures, broken);
}

}  // namespace
}  // namespace millrace
