#include "loader/batch_loader.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace millrace {
namespace {

constexpr std::uint64_t kLossesLogged = 20;
constexpr std::size_t kLossesKept = 64;
// Times are told now and then, not with every batch.
constexpr Duration kReportPeriod = std::chrono::seconds(1);

}  // namespace

Result<std::unique_ptr<BatchLoader>> BatchLoader::open(std::shared_ptr<BatchEngine> engine,
                                                       std::shared_ptr<const LoaderJob> job,
                                                       const LoaderOptions& options,
                                                       std::uint64_t epoch) {
  MR_ASSIGN_OR_RETURN(JobCursor cursor, JobCursor::make(std::move(job), options.choice, epoch));
  return std::unique_ptr<BatchLoader>(
      new BatchLoader(std::move(engine), std::move(cursor), options));
}

Result<std::unique_ptr<BatchLoader>> BatchLoader::resume(std::shared_ptr<BatchEngine> engine,
                                                         std::shared_ptr<const LoaderJob> job,
                                                         const LoaderOptions& options,
                                                         const LoaderState& state) {
  MR_ASSIGN_OR_RETURN(auto loader, open(std::move(engine), std::move(job), options, 0));
  MR_RETURN_IF_ERROR(loader->load(state));
  return loader;
}

BatchLoader::BatchLoader(std::shared_ptr<BatchEngine> engine, JobCursor cursor,
                         const LoaderOptions& options)
    : engine_(std::move(engine)),
      options_(options),
      cursor_(std::move(cursor)),
      reported_(system_clock().now()) {
  note_place();
}

BatchLoader::~BatchLoader() {
  if (!unreported_.empty()) engine_->report(unreported_);
}

Prefetcher& BatchLoader::prefetcher() {
  MutexLock lock(mutex_);
  if (prefetcher_ == nullptr) {
    prefetcher_ = std::make_shared<Prefetcher>(*engine_, cursor_, options_.prefetch);
  }
  return *prefetcher_;
}

void BatchLoader::restart(JobCursor cursor) {
  cursor_ = std::move(cursor);
  epoch_ended_ = false;
  alarm_.reset();
  note_place();
  std::shared_ptr<Prefetcher> old;
  {
    MutexLock lock(mutex_);
    stats_.stuck.clear();
    old = std::exchange(prefetcher_, nullptr);
  }
  // Its threads are waited for without the lock, which who asks for stats may want.
  old.reset();
}

void BatchLoader::note_place() {
  MutexLock lock(mutex_);
  stats_.epoch = cursor_.epoch();
  stats_.step = cursor_.step();
  stats_.steps = cursor_.steps();
  stats_.dropped = cursor_.dealing().dropped();
  stats_.padded = cursor_.dealing().padded();
}

Result<Prefetcher::Next> BatchLoader::wait(Prefetcher& prefetcher, TimePoint deadline) {
  Clock& clock = system_clock();
  for (;;) {
    if (!alarm_ && options_.watchdog > Duration()) alarm_ = clock.now() + options_.watchdog;
    auto next = prefetcher.next(alarm_ ? std::min(deadline, *alarm_) : deadline);
    if (!next || next->kind != NextKind::kNotYet) {
      alarm_.reset();
      return next;
    }
    if (alarm_ && clock.now() >= *alarm_) {
      alarm_.reset();
      note_stuck(prefetcher);
    }
    if (clock.now() >= deadline) return next;
  }
}

void BatchLoader::note_stuck(const Prefetcher& prefetcher) {
  const std::string where = prefetcher.where();
  log_warn("a loader waits long for a batch", {{"where", where}});
  MutexLock lock(mutex_);
  stats_.stuck = where;
}

Result<BatchLoader::Next> BatchLoader::next(TimePoint deadline) {
  if (epoch_ended_) {
    MR_RETURN_IF_ERROR(cursor_.begin_next_epoch());
    epoch_ended_ = false;
    note_place();
  }
  Clock& clock = system_clock();
  const TimePoint entered = clock.now();
  auto next = wait(prefetcher(), deadline);
  note_times(entered, clock.now());
  if (!next) return failure(std::move(next).error());
  if (next->kind == NextKind::kEndOfEpoch) epoch_ended_ = true;
  if (next->kind != NextKind::kBatch) return Next{.kind = next->kind};
  cursor_.take();
  note(next->taken);
  std::vector<SampleLoss>& losses = next->taken.read.losses;
  if (!losses.empty()) engine_->report({.losses = std::move(losses)});
  note_place();
  return Next{.batch = std::move(next->taken.read.batch)};
}

void BatchLoader::note_times(TimePoint entered, TimePoint now) {
  const LoaderReport times{.waiting = now - entered,
                           .consumer = left_ ? entered - *left_ : Duration()};
  left_ = now;
  unreported_ += times;
  {
    MutexLock lock(mutex_);
    stats_.waiting += times.waiting;
    stats_.consumer += times.consumer;
  }
  if (now - reported_ < kReportPeriod) return;
  reported_ = now;
  engine_->report(std::exchange(unreported_, {}));
}

void BatchLoader::note(const Prefetcher::Taken& taken) {
  const BatchView& view = *taken.read.batch.view;
  MutexLock lock(mutex_);
  ++stats_.batches;
  stats_.samples += view.samples();
  stats_.bytes += view.bytes().size();
  stats_.store += std::chrono::nanoseconds(view.head().store_ns);
  stats_.decode += std::chrono::nanoseconds(view.head().decode_ns);
  stats_.stuck.clear();
  note_losses(taken.read.losses);
  for (std::size_t n = 0; n < view.samples(); ++n) {
    digest_.add(taken.step.epoch, view.positions()[n], view.sources()[n], view.sample_ids()[n]);
  }
}

void BatchLoader::note_losses(const std::vector<SampleLoss>& losses) {
  for (const SampleLoss& loss : losses) {
    const PlacedSample& place = loss.failure.place;
    // All are counted; a log that is full of them says no more.
    if (stats_.failed++ < kLossesLogged) {
      log_warn("a sample cannot be had", {{"epoch", loss.epoch},
                                          {"position", place.position},
                                          {"key", loss.failure.key},
                                          {"error", loss.failure.why.to_string()},
                                          {"action", std::string(fault_action_name(loss.action))}});
    }
    if (stats_.failures.size() == kLossesKept) stats_.failures.erase(stats_.failures.begin());
    stats_.failures.push_back(loss);
    lost_.add({.source = place.source, .sample = place.sample});
  }
}

void BatchLoader::cancel() {
  std::shared_ptr<Prefetcher> current;
  {
    MutexLock lock(mutex_);
    current = prefetcher_;
  }
  if (current != nullptr) current->cancel();
}

LoaderState BatchLoader::state() const {
  LoaderState state = cursor_.state(cursor_.step());
  MutexLock lock(mutex_);
  state.delivered = digest_;
  state.lost = lost_;
  return state;
}

Status BatchLoader::load(const LoaderState& state) {
  MR_ASSIGN_OR_RETURN(JobCursor cursor,
                      JobCursor::resume(cursor_.shared_job(), options_.choice, state));
  restart(std::move(cursor));
  MutexLock lock(mutex_);
  // What one of several ranks has delivered is not what another goes on with.
  digest_ = options_.choice.topology.groups() == 1 ? state.delivered : DeliveryDigest();
  lost_ = state.lost;
  return {};
}

Status BatchLoader::set_epoch(std::uint64_t epoch) {
  LoaderState state = cursor_.state(cursor_.step());
  state.epoch = epoch;
  state.position = 0;
  MR_ASSIGN_OR_RETURN(JobCursor cursor,
                      JobCursor::resume(cursor_.shared_job(), options_.choice, state));
  restart(std::move(cursor));
  return {};
}

Status BatchLoader::set_shares(std::vector<MixShare> shares) {
  JobCursor cursor = cursor_;
  MR_RETURN_IF_ERROR(cursor.change_shares(std::move(shares)));
  const bool ended = epoch_ended_;
  restart(std::move(cursor));
  // The threads begin behind the end, which was told already.
  if (ended) MR_RETURN_IF_ERROR(cursor_.begin_next_epoch());
  note_place();
  return {};
}

LoaderStats BatchLoader::stats() const {
  std::shared_ptr<Prefetcher> current;
  LoaderStats stats;
  {
    MutexLock lock(mutex_);
    stats = stats_;
    current = prefetcher_;
  }
  stats.ready = current == nullptr ? 0 : current->ready();
  stats.reconnects = engine_->reconnects();
  return stats;
}

DeliveryDigest BatchLoader::digest() const {
  MutexLock lock(mutex_);
  return digest_;
}

}  // namespace millrace
