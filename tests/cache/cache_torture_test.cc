// The suites of the unit tests with the full figures.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/cache/cache_damage.h"
#include "tests/cache/cache_model.h"
#include "tests/cache/cache_simulation_run.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

TEST(CacheTorture, Model) {
  const std::uint64_t seed = torture_seed();
  const CacheModelFigures figures = run_cache_model(seed, full_torture() ? 5'000'000 : 20'000);
  report_torture(
      "cache_model", seed,
      fmt::format(R"("reads":{},"failed_reads":{},"evicted_blocks":{},"restarts":{})",
                  figures.reads, figures.failed_reads, figures.evicted_blocks, figures.restarts));
}

TEST(CacheTorture, BitFlips) {
  const std::uint64_t seed = torture_seed();
  const std::uint64_t flips = full_torture() ? 10'000 : 50;
  flip_cache_bits(seed, flips);
  report_torture("cache_flips", seed, fmt::format(R"("flips":{})", flips));
}

TEST(CacheTorture, Simulation) {
  const std::uint64_t seed = torture_seed();
  const std::uint64_t seeds = full_torture() ? 10'000 : 20;
  const SimulationFigures figures = simulate_cache(seed, seeds);
  report_torture(
      "cache_simulation", seed,
      fmt::format(R"("seeds":{},"reads":{},"failed_reads":{},"store_faults":{},"disk_faults":{})",
                  seeds, figures.succeeded + figures.failed, figures.failed, figures.store_faults,
                  figures.disk_faults));
}

}  // namespace
}  // namespace millrace
