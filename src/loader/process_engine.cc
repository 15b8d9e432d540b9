#include "loader/process_engine.h"

#include <deque>
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

  void extend(const RequestContext& context, std::span<const PlacedSample> places) override {
    if (engine_.plans_ == nullptr) return;
    std::vector<RequestContext> contexts;
    for (const auto& account : accounts_)
      contexts.push_back(account == nullptr ? context : context.with_account(account));
    std::vector<PlannedRead> reads;
    std::vector<std::uint64_t> ends;
    engine_.assembler_.look_up(context, places);
    for (const PlacedSample& place : places) {
      if (place.source < accounts_.size()) {
        const std::size_t first = reads.size();
        (void)engine_.assembler_.plan(contexts[place.source], place, reads);
        for (std::size_t n = first; n < reads.size(); ++n)
          reads[n].account = accounts_[place.source];
      }
      ends.push_back(reads_ + reads.size());
    }
    // Where there is no room for a plan the job reads like one without.
    const bool planned = append(contexts.front(), reads).ok();
    if (planned) reads_ += reads.size();
    for (const std::uint64_t end : ends)
      reads_before_.push_back(planned ? end : reads_);
  }

  void advance(std::uint64_t places_done) override {
    std::uint64_t reads_done = 0;
    for (; done_ < places_done && !reads_before_.empty(); ++done_) {
      reads_done = reads_before_.front();
      reads_before_.pop_front();
    }
    if (plan_ && reads_done > 0) (void)engine_.plans_->advance(*plan_, reads_done);
  }

 private:
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

}  // namespace millrace
