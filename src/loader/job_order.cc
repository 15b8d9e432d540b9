#include "loader/job_order.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

#include "loader/even_merge.h"

namespace millrace {

namespace {

// Others are made when they are asked for, which takes a microsecond.
constexpr std::uint64_t kPassesKept = 4;

// The key of what concerns all datasets of a job: it follows from all of them.
std::uint64_t job_key(const std::vector<JobSource>& sources, std::uint64_t seed,
                      std::uint64_t epoch, std::string_view purpose) {
  Sha256 all;
  for (const JobSource& source : sources)
    all.add(source.content_digest);
  return order_key({.content_digest = all.finish(), .seed = seed}, epoch, purpose);
}

bool is_by_weight(const MixPhase& phase) { return phase.shares[0].kind == ShareKind::kWeight; }

}  // namespace

Result<JobOrder> JobOrder::make(const JobOrderOptions& options, std::vector<JobSource> sources,
                                const MixPhase& phase, std::uint64_t epoch) {
  assert(!sources.empty() && phase.taken.size() == sources.size() &&
         phase.shares.size() == sources.size() && epoch >= phase.epoch);
  std::vector<std::uint64_t> samples;
  for (const JobSource& source : sources)
    samples.push_back(source.layout->samples());
  MR_ASSIGN_OR_RETURN(std::vector<std::uint64_t> counts,
                      mix_counts(phase.shares, samples, options.epoch_samples));
  // What the epoch has in which the phase begins.
  std::vector<std::uint64_t> first_counts = counts;
  if (phase.position > 0) {
    const std::uint64_t total = std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
    if (!is_by_weight(phase) || phase.position >= total) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("the shares of the datasets cannot change at position {} of an "
                                 "epoch of {} samples",
                                 phase.position, total));
    }
    MR_ASSIGN_OR_RETURN(first_counts, mix_counts(phase.shares, samples, total - phase.position));
  }
  const std::uint64_t first = epoch == phase.epoch ? phase.position : 0;
  std::vector<std::uint64_t> taken = phase.taken;
  for (std::size_t n = 0; n < taken.size(); ++n) {
    if (epoch > phase.epoch) taken[n] += first_counts[n] + (epoch - phase.epoch - 1) * counts[n];
  }
  JobOrder order(options, std::move(sources), epoch, first,
                 epoch == phase.epoch ? std::move(first_counts) : std::move(counts),
                 std::move(taken));
  order.by_weight_ = is_by_weight(phase);
  return order;
}

JobOrder::JobOrder(const JobOrderOptions& options, std::vector<JobSource> sources,
                   std::uint64_t epoch, std::uint64_t first, std::vector<std::uint64_t> counts,
                   std::vector<std::uint64_t> taken)
    : options_(options),
      sources_(std::move(sources)),
      epoch_(epoch),
      first_(first),
      mix_(counts, subkey(job_key(sources_, options.seed, epoch, "mix"), first)),
      sample_key_(job_key(sources_, options.seed, epoch, "sample")),
      taken_(std::move(taken)) {
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    std::vector<EpochOrder>& passes = passes_.emplace_back();
    if (counts[n] == 0) continue;
    const std::uint64_t samples = sources_[n].layout->samples();
    const std::uint64_t begin = taken_[n] / samples;
    const std::uint64_t last = (taken_[n] + counts[n] - 1) / samples;
    for (std::uint64_t pass = begin; pass <= std::min(last, begin + kPassesKept - 1); ++pass) {
      passes.push_back(pass_order(n, pass));
    }
  }
}

EpochOrder JobOrder::pass_order(std::size_t source, std::uint64_t pass) const {
  const OrderPlan plan{
      .mode = options_.mode,
      .seed = {.content_digest = sources_[source].content_digest, .seed = options_.seed},
      .window_rows = options_.window_rows};
  return {plan, sources_[source].layout, pass};
}

template <class Use>
auto JobOrder::in_pass(const MixedSequence::Pick& pick, const Use& use) const {
  const std::uint64_t samples = sources_[pick.sequence].layout->samples();
  const std::uint64_t taken = taken_[pick.sequence] + pick.index;
  const std::uint64_t kept = taken / samples - taken_[pick.sequence] / samples;
  const std::vector<EpochOrder>& passes = passes_[pick.sequence];
  if (kept < passes.size()) return use(passes[kept], taken % samples);
  return use(pass_order(pick.sequence, taken / samples), taken % samples);
}

JobOrder::Place JobOrder::at(std::uint64_t position) const {
  assert(position >= first_ && position < samples());
  const MixedSequence::Pick pick = mix_.at(position - first_);
  const std::uint64_t number =
      in_pass(pick, [](const EpochOrder& pass, std::uint64_t place) { return pass.at(place); });
  const JobSource& source = sources_[pick.sequence];
  return {.source = pick.sequence, .sample = source.split ? source.split->sample(number) : number};
}

OrderSurroundings JobOrder::surroundings(std::uint64_t position) const {
  assert(position >= first_ && position < samples());
  const MixedSequence::Pick pick = mix_.at(position - first_);
  OrderSurroundings around = in_pass(
      pick, [](const EpochOrder& pass, std::uint64_t place) { return pass.surroundings(place); });
  if (const JobSource& source = sources_[pick.sequence]; source.split) {
    around.first = source.split->sample(around.first);
    around.last = source.split->sample(around.last);
  }
  // About, in a mix: its parts are spread evenly.
  around.age_max = scaled(around.age_max, mix_.size(), mix_.count(pick.sequence));
  return around;
}

std::uint64_t JobOrder::seed_at(std::uint64_t position) const {
  return sample_seed(sample_key_, position);
}

MixPhase JobOrder::change(std::uint64_t position, std::vector<MixShare> shares) const {
  assert(position >= first_ && position <= samples() && shares.size() == sources_.size());
  const bool inside = by_weight_ && shares[0].kind == ShareKind::kWeight;
  // Nothing of the epoch is taken at its beginning, so there any shares can begin.
  const std::uint64_t boundary = position == 0 ? 0
                                 : inside      ? mix_.boundary(position - first_)
                                               : mix_.size();
  MixPhase phase{
      .epoch = epoch_, .position = first_ + boundary, .taken = taken_, .shares = std::move(shares)};
  const std::vector<std::uint64_t> before = mix_.taken_before(boundary);
  for (std::size_t n = 0; n < before.size(); ++n)
    phase.taken[n] += before[n];
  if (boundary == mix_.size()) {
    phase.epoch = epoch_ + 1;
    phase.position = 0;
  }
  return phase;
}

Result<JobEpoch> JobEpoch::make(const JobOrderOptions& options,
                                const std::vector<JobSource>& sources,
                                const std::vector<MixPhase>& phases, std::uint64_t epoch) {
  std::vector<JobOrder> orders;
  for (const MixPhase& phase : phases) {
    if (phase.epoch > epoch) break;
    MR_ASSIGN_OR_RETURN(JobOrder order, JobOrder::make(options, sources, phase, epoch));
    // What begins at the beginning replaces all that there was.
    if (order.first() == 0) orders.clear();
    orders.push_back(std::move(order));
  }
  if (orders.empty() || orders.front().first() != 0) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the weights were changed later than epoch {}, and those that it "
                               "began with are not kept: go on from a state of it",
                               epoch));
  }
  return JobEpoch(std::move(orders));
}

const JobOrder& JobEpoch::order(std::uint64_t position) const {
  const auto after = std::ranges::upper_bound(orders_, position, {}, &JobOrder::first);
  assert(after != orders_.begin());
  return *std::prev(after);
}

}  // namespace millrace
