#include "bench/cache_traces.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "cache/unit.h"

namespace millrace::bench {
namespace {

constexpr std::uint64_t kCacheBlocks = 8192;
constexpr std::uint64_t kEpochs = 6;
constexpr std::uint64_t kReaders = 4;
constexpr std::uint64_t kObjectBlocks = 256;  // Objects of 1 GiB.
// How far the readers of a job may be apart: what a loader keeps in flight.
constexpr std::uint64_t kReadersWindow = 64;

std::uint64_t below(Random& random, std::uint64_t limit) { return random.next() % limit; }

// The n-th block of the dataset whose objects begin at `first_object`.
BlockId nth_block(std::uint32_t first_object, std::uint64_t number) {
  return {.object = first_object + static_cast<std::uint32_t>(number / kObjectBlocks),
          .block = static_cast<std::uint32_t>(number % kObjectBlocks)};
}

// The reads of one job in plan order.
class JobReads {
 public:
  JobReads(std::uint32_t job, std::uint32_t first_object)
      : job_(job), first_object_(first_object) {}

  void add(std::uint64_t number, std::uint64_t bytes = kBlockBytes) {
    reads_.push_back({.block = nth_block(first_object_, number),
                      .bytes = static_cast<std::uint32_t>(bytes),
                      .job = job_,
                      .position = reads_.size()});
  }
  std::vector<TraceRead> take() { return std::move(reads_); }

 private:
  std::uint32_t job_;
  std::uint32_t first_object_;
  std::vector<TraceRead> reads_;
};

std::vector<std::uint64_t> permutation(Random& random, std::uint64_t size) {
  std::vector<std::uint64_t> numbers(size);
  std::iota(numbers.begin(), numbers.end(), std::uint64_t{0});
  for (std::uint64_t left = size; left > 1; --left)
    std::swap(numbers[left - 1], numbers[below(random, left)]);
  return numbers;
}

std::vector<TraceRead> shuffled_epochs(Random& random, std::uint32_t job, std::uint64_t blocks,
                                       std::uint64_t epochs = kEpochs) {
  JobReads reads(job, job * 10'000);
  for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
    for (const std::uint64_t number : permutation(random, blocks))
      reads.add(number);
  }
  return reads.take();
}

std::vector<TraceRead> sequential_epochs(std::uint64_t blocks) {
  JobReads reads(0, 0);
  for (std::uint64_t number = 0; number < kEpochs * blocks; ++number)
    reads.add(number % blocks);
  return reads.take();
}

// Draws numbers below `size`; the k-th most popular one with a weight of 1 / k^skew. Popular ones
// are spread over the dataset.
class Zipf {
 public:
  Zipf(Random& random, std::uint64_t size, double skew)
      : random_(random), sums_(size), numbers_(permutation(random, size)) {
    double sum = 0;
    for (std::uint64_t rank = 0; rank < size; ++rank)
      sums_[rank] = sum += 1 / std::pow(static_cast<double>(rank + 1), skew);
  }
  std::uint64_t next() {
    const auto found = std::ranges::lower_bound(sums_, random_.uniform() * sums_.back());
    return numbers_[static_cast<std::size_t>(found - sums_.begin())];
  }

 private:
  Random& random_;
  std::vector<double> sums_;
  std::vector<std::uint64_t> numbers_;
};

std::vector<TraceRead> zipf(Random& random, std::uint32_t job, std::uint64_t count) {
  Zipf numbers(random, 4 * kCacheBlocks, 0.9);
  JobReads reads(job, job * 10'000);
  for (std::uint64_t number = 0; number < count; ++number)
    reads.add(numbers.next());
  return reads.take();
}

// Whole small objects of 4 KiB to 1 MiB, as many of each power of two, and blocks.
std::vector<TraceRead> zipf_of_mixed_sizes(Random& random, std::uint64_t count) {
  Zipf numbers(random, 16 * kCacheBlocks, 0.9);
  JobReads reads(0, 0);
  for (std::uint64_t index = 0; index < count; ++index) {
    const std::uint64_t number = numbers.next();
    const std::uint64_t power = block_hash(nth_block(0, number)) % 10;
    reads.add(number, power == 9 ? kBlockBytes : (4 * kKiB) << power);
  }
  return reads.take();
}

// Every block of a dataset once.
std::vector<TraceRead> scan(std::uint32_t job, std::uint64_t blocks) {
  JobReads reads(job, job * 10'000);
  for (std::uint64_t number = 0; number < blocks; ++number)
    reads.add(number);
  return reads.take();
}

// Deals a job's reads to its readers in turn and lets these go on at random, none further than the
// window from the slowest.
std::vector<TraceRead> by_readers(Random& random, const std::vector<TraceRead>& plan) {
  std::vector<TraceRead> reads;
  reads.reserve(plan.size());
  std::vector<std::uint64_t> next(kReaders);
  std::iota(next.begin(), next.end(), std::uint64_t{0});
  while (reads.size() < plan.size()) {
    std::uint64_t& position = next[below(random, kReaders)];
    if (position >= plan.size() || position >= std::ranges::min(next) + kReadersWindow) continue;
    reads.push_back(plan[position]);
    position += kReaders;
  }
  return reads;
}

// Both at once, each at the pace that lets them end together.
std::vector<TraceRead> side_by_side(const std::vector<TraceRead>& a,
                                    const std::vector<TraceRead>& b) {
  std::vector<TraceRead> reads;
  reads.reserve(a.size() + b.size());
  std::size_t from_b = 0;
  for (std::size_t from_a = 0; from_a < a.size(); ++from_a) {
    reads.push_back(a[from_a]);
    for (; from_b * a.size() < (from_a + 1) * b.size(); ++from_b)
      reads.push_back(b[from_b]);
  }
  return reads;
}

Trace make_trace(std::string name, std::vector<TraceJob> jobs, std::vector<TraceRead> reads) {
  return {.name = std::move(name),
          .cache_bytes = kCacheBlocks * kBlockBytes,
          .jobs = std::move(jobs),
          .reads = std::move(reads)};
}

Trace shuffled_trace(Random& random, std::string name, std::uint64_t blocks) {
  const auto plan = shuffled_epochs(random, 0, blocks);
  return make_trace(std::move(name), {{.has_plan = true, .epoch_reads = blocks}},
                    by_readers(random, plan));
}

Trace zipf_and_scan(Random& random) {
  const std::uint64_t count = 16 * kCacheBlocks;
  const auto popular = zipf(random, 0, 3 * count);
  const auto third = [&](std::uint64_t n) {
    return std::vector(popular.begin() + static_cast<std::ptrdiff_t>(n * count),
                       popular.begin() + static_cast<std::ptrdiff_t>((n + 1) * count));
  };
  std::vector<TraceRead> reads = third(0);
  for (const auto& more : {side_by_side(third(1), scan(1, 4 * kCacheBlocks)), third(2)})
    reads.insert(reads.end(), more.begin(), more.end());
  return make_trace("zipf_and_scan", {{}, {}}, std::move(reads));
}

// What the first job read is of no use to the second.
Trace one_job_after_another(Random& random) {
  const std::uint64_t blocks = 2 * kCacheBlocks;
  std::vector<TraceRead> reads = by_readers(random, shuffled_epochs(random, 0, blocks, 3));
  const auto second = by_readers(random, shuffled_epochs(random, 1, blocks));
  reads.insert(reads.end(), second.begin(), second.end());
  const TraceJob job{.has_plan = true, .epoch_reads = blocks};
  return make_trace("job_after_job", {job, job}, std::move(reads));
}

Trace two_jobs(Random& random) {
  const std::uint64_t blocks = 2 * kCacheBlocks;
  const auto planned = by_readers(random, shuffled_epochs(random, 0, blocks));
  const auto unplanned = zipf(random, 1, planned.size());
  return make_trace("two_jobs", {{.has_plan = true, .epoch_reads = blocks}, {}},
                    side_by_side(planned, unplanned));
}

}  // namespace

bool Trace::has_plan() const { return std::ranges::any_of(jobs, &TraceJob::has_plan); }

bool Trace::has_equal_sizes() const {
  return std::ranges::all_of(
      reads, [&](const TraceRead& read) { return read.bytes == reads.front().bytes; });
}

std::vector<Trace> synthetic_traces(std::uint64_t seed) {
  SeededRandom random(seed);
  std::vector<Trace> traces;
  traces.push_back(shuffled_trace(random, "shuffled_4x", 4 * kCacheBlocks));
  traces.push_back(shuffled_trace(random, "shuffled_2x", 2 * kCacheBlocks));
  traces.push_back(shuffled_trace(random, "shuffled_1.25x", kCacheBlocks + kCacheBlocks / 4));
  traces.push_back(make_trace("sequential_4x",
                              {{.has_plan = true, .epoch_reads = 4 * kCacheBlocks}},
                              by_readers(random, sequential_epochs(4 * kCacheBlocks))));
  traces.push_back(make_trace("zipf", {{}}, zipf(random, 0, 32 * kCacheBlocks)));
  traces.push_back(
      make_trace("zipf_mixed_sizes", {{}}, zipf_of_mixed_sizes(random, 64 * kCacheBlocks)));
  traces.back().cache_bytes = kCacheBlocks * kMiB;
  traces.push_back(zipf_and_scan(random));
  traces.push_back(two_jobs(random));
  traces.push_back(one_job_after_another(random));
  return traces;
}

Trace recorded_trace(const std::string& file, std::uint64_t cache_bytes) {
  std::ifstream lines(file);
  if (!lines) throw std::runtime_error(fmt::format("cannot read the trace {}", file));
  Trace trace{.name = "recorded", .cache_bytes = cache_bytes, .jobs = {}, .reads = {}};
  std::size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    line.erase(std::min(line.find('#'), line.size()));
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    std::istringstream words(line);
    TraceRead read;
    read.position = trace.reads.size();
    std::string rest;
    if (!(words >> read.block.object >> read.block.block >> read.bytes) || words >> rest ||
        read.bytes == 0) {
      throw std::runtime_error(fmt::format(
          "{}:{}: expected three numbers: object, block, and bytes above 0", file, number));
    }
    trace.reads.push_back(read);
  }
  if (trace.reads.empty()) throw std::runtime_error(fmt::format("the trace {} is empty", file));
  trace.jobs = {{.has_plan = true, .epoch_reads = trace.reads.size()}};
  return trace;
}

}  // namespace millrace::bench
