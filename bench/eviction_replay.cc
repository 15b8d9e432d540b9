#include "bench/eviction_replay.h"

#include <algorithm>
#include <limits>
#include <list>
#include <optional>
#include <set>
#include <stdexcept>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/client_usage.h"
#include "cache/eviction.h"

namespace millrace::bench {
namespace {

// Adds up what a policy fetches. A policy has `bool read(index, const TraceRead&)`: hit or not, and
// `written_bytes()`.
template <class Policy>
ReplayResult replay(const Trace& trace, Policy&& policy) {
  ReplayResult result;
  const ClientUsage usage;
  for (std::size_t index = 0; index < trace.reads.size(); ++index) {
    const TraceRead& read = trace.reads[index];
    result.asked_bytes += read.bytes;
    if (!policy.read(index, read)) result.fetched_bytes += read.bytes;
  }
  result.written_bytes = policy.written_bytes();
  result.figures = usage.figures(static_cast<double>(trace.reads.size()));
  return result;
}

class Lru {
 public:
  explicit Lru(const Trace& trace) : room_bytes_(trace.cache_bytes) {}

  bool read(std::size_t /*index*/, const TraceRead& read) {
    const auto found = where_.find(read.block);
    if (found != where_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return true;
    }
    for (; room_bytes_ < read.bytes && !order_.empty(); order_.pop_back()) {
      room_bytes_ += order_.back().bytes;
      where_.erase(order_.back().block);
    }
    if (room_bytes_ < read.bytes) return false;
    order_.push_front(read);
    where_[read.block] = order_.begin();
    room_bytes_ -= read.bytes;
    written_bytes_ += read.bytes;
    return false;
  }
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  std::list<TraceRead> order_;
  std::unordered_map<BlockId, std::list<TraceRead>::iterator> where_;
  std::uint64_t room_bytes_;
  std::uint64_t written_bytes_ = 0;
};

// The next read of the same block, for each read of a trace.
std::vector<std::size_t> next_reads(const Trace& trace) {
  std::vector<std::size_t> next(trace.reads.size());
  std::unordered_map<BlockId, std::size_t> seen;
  for (std::size_t index = trace.reads.size(); index-- > 0;) {
    const auto [found, is_last] =
        seen.try_emplace(trace.reads[index].block, std::numeric_limits<std::size_t>::max());
    next[index] = std::exchange(found->second, index);
  }
  return next;
}

class Belady {
 public:
  explicit Belady(const Trace& trace) : next_(next_reads(trace)), room_bytes_(trace.cache_bytes) {}

  bool read(std::size_t index, const TraceRead& read) {
    const auto found = cached_.find({index, read.block.object, read.block.block});
    if (found != cached_.end()) {
      cached_.erase(found);
      enter(index, read);
      return true;
    }
    while (room_bytes_ < read.bytes && !cached_.empty() &&
           std::get<0>(*cached_.rbegin()) > next_[index]) {
      const auto last = std::prev(cached_.end());
      const BlockId block{.object = std::get<1>(*last), .block = std::get<2>(*last)};
      room_bytes_ += bytes_.extract(block).mapped();
      cached_.erase(last);
    }
    if (room_bytes_ < read.bytes) return false;
    room_bytes_ -= read.bytes;
    bytes_[read.block] = read.bytes;
    written_bytes_ += read.bytes;
    enter(index, read);
    return false;
  }
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  void enter(std::size_t index, const TraceRead& read) {
    cached_.insert({next_[index], read.block.object, read.block.block});
  }

  std::vector<std::size_t> next_;
  std::set<std::tuple<std::size_t, std::uint32_t, std::uint32_t>> cached_;
  std::unordered_map<BlockId, std::uint32_t> bytes_;
  std::uint64_t room_bytes_;
  std::uint64_t written_bytes_ = 0;
};

class Ours {
 public:
  // Without an announcement nobody has a plan.
  Ours(const Trace& trace, std::optional<Announcement> announcement)
      : announcement_(announcement), cache_bytes_(trace.cache_bytes) {
    for (std::uint32_t job = 0; job < trace.jobs.size(); ++job)
      jobs_.push_back(announcement && trace.jobs[job].has_plan ? planned_job(trace, job) : Job{});
    for (Job& job : jobs_) {
      if (job.epochs.empty()) continue;
      const auto plan = eviction_.announce(ReadPlanStretch(std::move(job.epochs[0])));
      if (!plan) throw std::runtime_error(plan.error().to_string());
      job.plan = *plan;
      announce_if_due(job);
    }
  }

  bool read(std::size_t /*index*/, const TraceRead& read) {
    const bool hit = eviction_.touch(read.block);
    if (!hit) keep(read);
    Job& job = jobs_[read.job];
    if (job.plan) report_progress(job, read.position);
    return hit;
  }
  std::uint64_t written_bytes() const { return written_bytes_; }

 private:
  struct Job {
    std::vector<std::vector<PlannedBlock>> epochs;
    std::uint64_t epoch_reads = 0;
    std::size_t announced_epochs = 1;
    std::optional<PlanId> plan;
    std::uint64_t position = 0;
    std::set<std::uint64_t> ahead;  // Done, though an earlier read is not.
  };

  static Job planned_job(const Trace& trace, std::uint32_t number) {
    Job job;
    job.epoch_reads = trace.jobs[number].epoch_reads;
    std::vector<PlannedBlock> order;
    for (const TraceRead& read : trace.reads) {
      if (read.job != number) continue;
      order.resize(std::max<std::size_t>(order.size(), read.position + 1));
      order[read.position] = {.block = read.block, .bytes = read.bytes};
    }
    for (auto begin = order.begin(); begin != order.end();) {
      const auto end =
          begin + std::min<std::ptrdiff_t>(order.end() - begin,
                                           static_cast<std::ptrdiff_t>(job.epoch_reads));
      job.epochs.emplace_back(begin, end);
      begin = end;
    }
    return job;
  }

  void announce_if_due(Job& job) {
    if (job.announced_epochs == job.epochs.size()) return;
    const std::uint64_t lead_reads =
        announcement_ == Announcement::kEpochAhead ? job.epoch_reads : job.epoch_reads / 10;
    if (job.position + lead_reads < job.announced_epochs * job.epoch_reads) return;
    ReadPlanStretch epoch(std::move(job.epochs[job.announced_epochs++]));
    const Status status = eviction_.extend(*job.plan, std::move(epoch));
    if (!status.ok()) throw std::runtime_error(status.to_string());
  }

  void report_progress(Job& job, std::uint64_t done) {
    job.ahead.insert(done);
    const std::uint64_t before = job.position;
    for (; !job.ahead.empty() && *job.ahead.begin() == job.position; ++job.position)
      job.ahead.erase(job.ahead.begin());
    if (job.position == before) return;
    const Status status = eviction_.advance(*job.plan, job.position);
    if (!status.ok()) throw std::runtime_error(status.to_string());
    announce_if_due(job);
  }

  void keep(const TraceRead& read) {
    while (eviction_.bytes() + read.bytes > cache_bytes_) {
      if (!eviction_.worth_keeping(read.block, jobs_[read.job].plan)) return;
      const auto victim = eviction_.pop_victim();
      if (!victim) return;
    }
    eviction_.insert(read.block, read.bytes);
    written_bytes_ += read.bytes;
  }

  std::optional<Announcement> announcement_;
  std::uint64_t cache_bytes_;
  std::uint64_t written_bytes_ = 0;
  Eviction eviction_;
  std::vector<Job> jobs_;
};

}  // namespace

ReplayResult replay_lru(const Trace& trace) { return replay(trace, Lru(trace)); }

ReplayResult replay_unplanned(const Trace& trace) {
  return replay(trace, Ours(trace, std::nullopt));
}

ReplayResult replay_planned(const Trace& trace, Announcement announcement) {
  return replay(trace, Ours(trace, announcement));
}

ReplayResult replay_belady(const Trace& trace) { return replay(trace, Belady(trace)); }

}  // namespace millrace::bench
