#include "loader/process_engine.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <utility>

namespace millrace {
namespace {

std::vector<AssembledSource> assembled(const std::vector<OpenSource>& sources) {
  std::vector<AssembledSource> all;
  for (const OpenSource& source : sources)
    all.push_back({.files = *source.files, .source = *source.source});
  return all;
}

}  // namespace

// Samples as reads of the cache. A sample that cannot be looked up has none: who reads it will
// say so.
class ProcessEngine::CachePlan final : public BatchPlan {
 public:
  CachePlan(const ProcessEngine& engine, const Caller& caller) : engine_(engine) {
    for (const OpenSource& source : engine.sources_)
      accounts_.push_back(source.files->account(caller));
  }
  ~CachePlan() override {
    if (plan_) engine_.plans_->withdraw(*plan_);
  }

  void extend(const RequestContext& context, std::span<const PlannedSample> samples) override {
    if (engine_.plans_ == nullptr) return;
    std::vector<RequestContext> contexts;
    for (const auto& account : accounts_)
      contexts.push_back(account == nullptr ? context : context.with_account(account));
    std::vector<PlannedRead> reads;
    std::vector<std::uint64_t> ends;
    look_up(context, samples);
    Edges edges;
    for (const PlannedSample& planned : samples) {
      if (planned.source < accounts_.size()) {
        const RequestContext& charged = contexts[planned.source];
        const std::size_t first = reads.size();
        (void)engine_.assembler_.plan(charged, planned.source, planned.sample, reads);
        for (PlannedRead& read : std::span(reads).subspan(first)) {
          read.account = accounts_[planned.source];
          read.around = around(charged, planned, read, edges);
        }
      }
      ends.push_back(reads_ + reads.size());
    }
    // Where there is no room for a plan the job reads like one without.
    const bool planned = append(contexts.front(), reads).ok();
    if (planned) reads_ += reads.size();
    for (const std::uint64_t end : ends)
      reads_before_.push_back(planned ? end : reads_);
  }

  void advance(std::uint64_t samples_done) override {
    std::uint64_t reads_done = 0;
    for (; done_ < samples_done && !reads_before_.empty(); ++done_) {
      reads_done = reads_before_.front();
      reads_before_.pop_front();
    }
    if (plan_ && reads_done > 0) (void)engine_.plans_->advance(*plan_, reads_done);
  }

 private:
  // The reads of samples that are the first or the last of their block, by dataset and sample.
  using Edges = std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<PlannedRead>>;

  void look_up(const RequestContext& context, std::span<const PlannedSample> samples) const {
    std::vector<std::vector<std::uint64_t>> wanted(accounts_.size());
    for (const PlannedSample& planned : samples) {
      if (planned.source >= wanted.size()) continue;
      wanted[planned.source].push_back(planned.sample);
      if (planned.last == PlannedSample::kNoBound || planned.first == planned.last) continue;
      wanted[planned.source].push_back(planned.first);
      wanted[planned.source].push_back(planned.last);
    }
    engine_.assembler_.look_up(context, wanted);
  }

  // What of the read's object lies between the first and the last sample of its block. A block that
  // begins or ends in another object has no bound on that side.
  ByteRange around(const RequestContext& context, const PlannedSample& planned,
                   const PlannedRead& read, Edges& edges) const {
    if (planned.last == PlannedSample::kNoBound) return PlannedRead::kEverything;
    if (planned.first == planned.last) return read.range;
    const auto reads_of = [&](std::uint64_t sample) -> const std::vector<PlannedRead>& {
      const auto [edge, is_new] = edges.try_emplace({planned.source, sample});
      if (is_new) (void)engine_.assembler_.plan(context, planned.source, sample, edge->second);
      return edge->second;
    };
    std::uint64_t begin = read.range.offset;
    std::uint64_t end = read.range.end();
    bool has_begin = false;
    bool has_end = false;
    for (const PlannedRead& edge : reads_of(planned.first)) {
      if (edge.object.digest() != read.object.digest()) continue;
      begin = std::min(begin, edge.range.offset);
      has_begin = true;
    }
    for (const PlannedRead& edge : reads_of(planned.last)) {
      if (edge.object.digest() != read.object.digest()) continue;
      end = std::max(end, edge.range.end());
      has_end = true;
    }
    if (!has_begin) begin = 0;
    if (!has_end) end = read.object.size();
    return {begin, end - begin};
  }

  Status append(const RequestContext& context, const std::vector<PlannedRead>& reads) {
    if (plan_) return engine_.plans_->extend(context, *plan_, reads);
    MR_ASSIGN_OR_RETURN(plan_, engine_.plans_->announce(context, reads));
    return {};
  }

  const ProcessEngine& engine_;
  std::vector<std::shared_ptr<FetchAccount>> accounts_;  // Of each dataset.
  std::optional<PlanId> plan_;
  std::uint64_t reads_ = 0;                 // In the plan.
  std::uint64_t done_ = 0;                  // Samples.
  std::deque<std::uint64_t> reads_before_;  // Of samples from done_ on: reads up to its end.
};

ProcessEngine::ProcessEngine(std::vector<OpenSource> sources, PlannedReads* plans)
    : sources_(std::move(sources)), plans_(plans), assembler_(assembled(sources_)) {
  for (const OpenSource& source : sources_)
    facts_.push_back(source.facts);
}

std::unique_ptr<BatchPlan> ProcessEngine::start_plan(std::shared_ptr<const Caller> caller) {
  return std::make_unique<CachePlan>(*this, *caller);
}

void ProcessEngine::report(const LoaderReport& report) {
  MutexLock lock(mutex_);
  lost_.add(report.losses);
}

Result<std::vector<LostPlace>> ProcessEngine::lost(const RequestContext& /*context*/) {
  MutexLock lock(mutex_);
  return lost_.all();
}

}  // namespace millrace
