// Shuffled epochs over a dataset four times the cache, by four concurrent readers that announce
// their order while they read: how much the cache fetches, against Belady's optimum and LRU on the
// same reads.

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_options.h"
#include "bench/bench_report.h"
#include "bench/bench_store.h"
#include "bench/cache_bench_setup.h"
#include "bench/cache_traces.h"
#include "bench/client_usage.h"
#include "bench/eviction_replay.h"
#include "bench/generated_store.h"
#include "bench/scratch_directory.h"

namespace millrace::bench {
namespace {

constexpr std::uint32_t kObjects = 64;
constexpr std::uint64_t kPackBytes = 64 * kMiB;
constexpr std::uint32_t kBlocksPerObject = kPackBytes / kBlockBytes;
constexpr std::uint32_t kBlocks = kObjects * kBlocksPerObject;
constexpr std::uint64_t kCacheBytes = kObjects * kPackBytes / 4;
constexpr std::uint32_t kEpochs = 4;
constexpr unsigned kReaders = 4;
constexpr double kPlanRssMibMax = 512;

std::vector<std::uint32_t> epoch_order(std::uint32_t epoch) {
  std::vector<std::uint32_t> order(kBlocks);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(epoch + 1);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

std::vector<PlannedRead> planned(const std::vector<ObjectVersion>& objects,
                                 const std::vector<std::uint32_t>& order) {
  std::vector<PlannedRead> reads;
  for (const std::uint32_t block : order) {
    reads.push_back(
        {objects[block / kBlocksPerObject], {block % kBlocksPerObject * kBlockBytes, kBlockBytes}});
  }
  return reads;
}

// The lowest read that is not done: readers finish out of order.
class Progress {
 public:
  std::uint64_t done(std::uint64_t position) {
    const std::lock_guard lock(mutex_);
    ahead_.insert(position);
    while (ahead_.erase(next_) > 0)
      ++next_;
    return next_;
  }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> ahead_;
  std::uint64_t next_ = 0;
};

RunFigures read_epochs(CacheBenchSetup& setup, const std::vector<ObjectVersion>& objects) {
  const RequestContext context = run_context();
  PlannedReads& plans = setup.cache().plans();
  std::vector<std::vector<std::uint32_t>> orders;
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch)
    orders.push_back(epoch_order(epoch));
  const ClientUsage usage;
  const PlanId plan = require(plans.announce(context, planned(objects, orders[0])));
  std::atomic<std::uint64_t> next = 0;
  Progress progress;
  std::vector<std::thread> readers;
  for (unsigned reader = 0; reader < kReaders; ++reader) {
    readers.emplace_back([&] {
      for (std::uint64_t position; (position = next++) < std::uint64_t{kBlocks} * kEpochs;) {
        const auto epoch = static_cast<std::uint32_t>(position / kBlocks);
        // Whoever begins an epoch announces the next one.
        if (position % kBlocks == 0 && epoch + 1 < kEpochs) {
          require(plans.extend(context, plan, planned(objects, orders[epoch + 1])));
        }
        const std::uint32_t block = orders[epoch][position % kBlocks];
        const ByteRange range{block % kBlocksPerObject * kBlockBytes, kBlockBytes};
        const Slice data =
            read_now(setup.cache(), context, objects[block / kBlocksPerObject], range);
        if (data.size() != kBlockBytes) give_up({StatusCode::kInternal, "short read"});
        require(plans.advance(plan, progress.done(position)));
      }
    });
  }
  for (std::thread& reader : readers)
    reader.join();
  plans.withdraw(plan);
  return usage.figures(static_cast<double>(kBlocks) * kEpochs * kBlockBytes);
}

Trace trace_of_epochs() {
  Trace trace{.name = "epochs", .cache_bytes = kCacheBytes, .jobs = {TraceJob{}}, .reads = {}};
  for (std::uint32_t epoch = 0; epoch < kEpochs; ++epoch) {
    for (const std::uint32_t block : epoch_order(epoch)) {
      trace.reads.push_back({.block = {block / kBlocksPerObject, block % kBlocksPerObject},
                             .bytes = kBlockBytes,
                             .job = 0,
                             .position = trace.reads.size()});
    }
  }
  return trace;
}

void run() {
  const ScratchDirectory scratch(ScratchDirectory::Kind::kDisk);
  CacheBenchSetup setup({.directory = scratch.path() + "/cache", .quota_bytes = kCacheBytes});
  setup.add_store(std::make_shared<GeneratedStore>(setup.pool()));
  std::vector<ObjectVersion> objects;
  for (std::uint32_t i = 0; i < kObjects; ++i) {
    objects.push_back(CacheBenchSetup::object(fmt::format("pack{:03}", i),
                                              std::string(GeneratedStore::kIdentity), kPackBytes));
  }
  const RunFigures figures = read_epochs(setup, objects);
  const Trace trace = trace_of_epochs();
  const ReplayResult belady = replay_belady(trace);
  const ReplayResult lru = replay_lru(trace);
  const auto fetched = static_cast<double>(setup.fetched_bytes());
  fmt::print("fetched {:.2f} GiB; Belady's optimum {:.2f}, LRU {:.2f}\n", fetched / kGiB,
             static_cast<double>(belady.fetched_bytes) / kGiB,
             static_cast<double>(lru.fetched_bytes) / kGiB);
  Comparison comparison;
  comparison.rounds.push_back({.ours = figures, .peer = figures, .peer_name = "itself"});
  comparison.ceiling_rate = figures.rate();
  report({.bench = "cache_plan_shuffled_4x",
          .value = fetched / kGiB,
          .unit = "GiB fetched",
          .ratio = fetched / static_cast<double>(belady.fetched_bytes),
          .against = fmt::format(
              "Belady's optimum (LRU: {:.2f})",
              static_cast<double>(lru.fetched_bytes) / static_cast<double>(belady.fetched_bytes)),
          .goal = Goal{Goal::Kind::kAtMost, 1.05},
          .cpu_s = figures.cpu_s,
          .rss_mib = figures.rss_mib,
          .rss_mib_max = kPlanRssMibMax},
         comparison, bytes_unit());
}

}  // namespace
}  // namespace millrace::bench

int main(int argc, char** argv) {
  using namespace millrace::bench;
  (void)parse_options(argc, argv, {.seconds = 1, .rounds = 1});
  return run_bench("cache_plan", [] { run(); });
}
