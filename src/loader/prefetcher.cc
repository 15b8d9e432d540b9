#include "loader/prefetcher.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {
namespace {

// More readers than that only wait for one another.
constexpr std::size_t kReadersMax = 16;
// Looking samples up may take requests. Only those who read ahead for the first time wait for it.
constexpr Duration kPlanTimeout = std::chrono::minutes(1);

}  // namespace

Prefetcher::Prefetcher(BatchEngine& engine, JobCursor from, const PrefetchOptions& options,
                       Clock& clock)
    : engine_(engine),
      options_(options),
      clock_(clock),
      cancellation_(std::make_shared<Cancellation>()),
      ahead_(from),
      planner_(engine.sources(), from, 2 * options.batches * from.choice().batch) {
  for (std::size_t n = 0; n < std::min(options.batches, kReadersMax); ++n)
    threads_.emplace_back([this] { read_batches(); });
  threads_.emplace_back([this] { plan_reads(); });
}

Prefetcher::~Prefetcher() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  cancellation_->request();
  for (std::thread& thread : threads_)
    thread.join();
}

RequestContext Prefetcher::context(TimePoint deadline) const {
  return RequestContext(deadline, options_.caller).with_cancellation(cancellation_).with_plan();
}

void Prefetcher::add_slots() {
  while (batches_in_slots_ < options_.batches && !is_over_) {
    if (ahead_.at_end()) {
      // That of the last epoch is told before that nothing follows.
      if (ahead_.is_last_epoch()) slots_.emplace_back().state = SlotState::kEndOfEpoch;
      Slot& end = slots_.emplace_back();
      end.state = SlotState::kEndOfEpoch;
      end.failure = ahead_.begin_next_epoch();
      // Nothing follows what cannot begin: next() tells why.
      is_over_ = !end.failure.ok();
      if (is_over_) end.state = SlotState::kFailed;
      if (is_over_ || ahead_.at_end()) return;
      continue;
    }
    Slot& slot = slots_.emplace_back();
    slot.step = ahead_.take();
    slot.order = ahead_.order();
    ++batches_in_slots_;
  }
}

Prefetcher::Slot* Prefetcher::take_slot() {
  add_slots();
  const auto found = std::ranges::find(slots_, SlotState::kToRead, &Slot::state);
  if (found == slots_.end()) return nullptr;
  if (std::exchange(first_taken_, true) && !reads_ahead_) return nullptr;
  found->state = SlotState::kReading;
  found->begun = clock_.now();
  found->retries = retries_;
  return &*found;
}

void Prefetcher::read_batches() {
  MutexLock lock(mutex_);
  while (!stopping_) {
    Slot* const slot = take_slot();
    if (slot == nullptr) {
      changed_.wait(mutex_);
      continue;
    }
    const CursorStep step = slot->step;
    const std::shared_ptr<const JobEpoch> order = slot->order;
    lock.unlock();
    auto read = read_batch(context(clock_.now() + options_.batch_timeout), engine_, *order,
                           places_of(*order, step.share), options_.faults, row_);
    lock.lock();
    // The slot is still there: only what is ready is taken.
    if (read) {
      slot->state = SlotState::kReady;
      slot->read = *std::move(read);
    } else if (slot->retries != retries_) {
      slot->state = SlotState::kToRead;
    } else {
      slot->state = SlotState::kFailed;
      slot->failure = read.error();
    }
    has_first_ = true;
    note_progress();
    changed_.notify_all();
  }
}

bool Prefetcher::wait_for_first_batch() {
  MutexLock lock(mutex_);
  while (!stopping_ && !has_first_)
    changed_.wait(mutex_);
  return !stopping_;
}

void Prefetcher::begin_reading_ahead() {
  MutexLock lock(mutex_);
  if (!std::exchange(reads_ahead_, true)) changed_.notify_all();
}

void Prefetcher::note_progress() {
  std::uint64_t samples = taken_samples_;
  for (const Slot& slot : slots_) {
    if (slot.state == SlotState::kEndOfEpoch) continue;
    if (slot.state != SlotState::kReady) break;
    samples += slot.step.share.count;
  }
  read_samples_ = samples;
}

void Prefetcher::retry_failed() {
  ++retries_;
  for (Slot& slot : slots_) {
    // An epoch that cannot begin has no samples, and will not begin however often it is tried.
    if (slot.state != SlotState::kFailed || slot.order == nullptr) continue;
    slot.state = SlotState::kToRead;
    slot.failure = {};
  }
  changed_.notify_all();
}

Result<Prefetcher::Next> Prefetcher::next(TimePoint deadline) {
  MutexLock lock(mutex_);
  add_slots();
  if (std::exchange(failure_told_, false)) retry_failed();
  for (;;) {
    if (std::exchange(cancelled_, false)) {
      return failure(StatusCode::kCancelled, "the wait for a batch was called off");
    }
    Slot& slot = slots_.front();
    if (slot.state == SlotState::kEndOfEpoch) {
      slots_.pop_front();
      return Next{.kind = NextKind::kEndOfEpoch};
    }
    if (slot.state == SlotState::kFailed) {
      failure_told_ = true;
      return failure(slot.failure);
    }
    if (slot.state == SlotState::kReady) break;
    if (!changed_.wait_until(mutex_, deadline) && clock_.now() >= deadline) {
      return Next{.kind = NextKind::kNotYet};
    }
  }
  Next next{.taken = {.step = slots_.front().step, .read = std::move(slots_.front().read)}};
  slots_.pop_front();
  --batches_in_slots_;
  taken_samples_ += next.taken.step.share.count;
  note_progress();
  changed_.notify_all();
  return next;
}

void Prefetcher::cancel() {
  MutexLock lock(mutex_);
  cancelled_ = true;
  changed_.notify_all();
}

void Prefetcher::plan_reads() {
  const std::unique_ptr<BatchPlan> plan = engine_.start_plan(options_.caller);
  plan->extend(context(clock_.now() + kPlanTimeout), {});  // Meanwhile it is found whom to tell.
  if (!wait_for_first_batch()) return;
  std::uint64_t told = 0;
  for (;;) {
    std::uint64_t read = 0;
    {
      MutexLock lock(mutex_);
      while (!stopping_ && read_samples_ == told && !planner_.is_due(read_samples_))
        changed_.wait(mutex_);
      if (stopping_) return;
      read = read_samples_;
    }
    // Reads may be further than what was planned, at the beginning, and where nothing follows.
    if (read > told && (read <= planner_.planned() || !planner_.is_due(read))) {
      plan->advance(std::min(read, planner_.planned()));
      told = read;
    }
    if (!planner_.is_due(read)) continue;
    const std::vector<PlannedSample> samples = planner_.take(read);
    if (!samples.empty()) plan->extend(context(clock_.now() + kPlanTimeout), samples);
    begin_reading_ahead();
  }
}

std::size_t Prefetcher::ready() const {
  MutexLock lock(mutex_);
  return static_cast<std::size_t>(std::ranges::count(slots_, SlotState::kReady, &Slot::state));
}

std::string Prefetcher::where() const {
  MutexLock lock(mutex_);
  if (slots_.empty()) return "no batch was asked for yet";
  const Slot& slot = slots_.front();
  const std::string batch =
      fmt::format("batch {} of epoch {} ({} samples from position {} on)", slot.step.number,
                  slot.step.epoch, slot.step.share.count, slot.step.share.first);
  switch (slot.state) {
    case SlotState::kReading:
      return fmt::format("{} is being read since {:.1f} s, by the {}", batch,
                         std::chrono::duration<double>(clock_.now() - slot.begun).count(),
                         engine_.kind());
    case SlotState::kToRead:
      return fmt::format("{} waits for a thread to read it", batch);
    case SlotState::kFailed:
      return fmt::format("{} has failed: {}", batch, slot.failure.to_string());
    case SlotState::kReady:
    case SlotState::kEndOfEpoch:
      break;
  }
  return fmt::format("{} waits to be taken", batch);
}

}  // namespace millrace
