#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/batch_reader.h"
#include "loader/delivery_digest.h"
#include "loader/job_cursor.h"
#include "loader/prefetcher.h"

namespace millrace {

struct LoaderOptions {
  RankChoice choice = {};
  PrefetchOptions prefetch = {};
  // Without a batch for so long, it is logged where it is stuck. 0: never.
  Duration watchdog = std::chrono::minutes(1);
};

// Where the time went, and what became of it.
struct LoaderStats {
  std::uint64_t batches = 0;  // Handed out, as samples and bytes.
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;
  std::uint64_t steps = 0;
  std::uint64_t ready = 0;
  // Of this epoch, over all ranks: never delivered, or twice.
  std::uint64_t dropped = 0;
  std::uint64_t padded = 0;
  // Of the consumer: in next(), and outside of it since the first batch.
  Duration waiting{};
  Duration consumer{};
  // Of the threads that read, summed up over those batches.
  Duration store{};
  Duration decode{};
  // In what was handed out: how many, and the last of them.
  std::uint64_t failed = 0;
  std::vector<SampleLoss> failures = {};
  std::string stuck = {};
  std::uint64_t reconnects = 0;
};

// The batches of one rank, and where it is.
//
// Nothing is read, and no thread runs, before the first next(). Needs one thread at a time, but for
// cancel(), stats() and digest().
class BatchLoader {
 public:
  // At the beginning of `epoch`, or behind what a state says was delivered. Fails as JobCursor.
  static Result<std::unique_ptr<BatchLoader>> open(std::shared_ptr<BatchEngine> engine,
                                                   std::shared_ptr<const LoaderJob> job,
                                                   const LoaderOptions& options,
                                                   std::uint64_t epoch);
  static Result<std::unique_ptr<BatchLoader>> resume(std::shared_ptr<BatchEngine> engine,
                                                     std::shared_ptr<const LoaderJob> job,
                                                     const LoaderOptions& options,
                                                     const LoaderState& state);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  struct Next {
    NextKind kind = NextKind::kBatch;
    Batch batch = {};  // Of kBatch.
  };
  // As Prefetcher::next(). The call after the end of an epoch begins the next one.
  Result<Next> next(TimePoint deadline);
  void cancel();

  std::uint64_t epoch() const { return cursor_.epoch(); }
  std::uint64_t step() const { return cursor_.step(); }
  std::uint64_t steps() const { return cursor_.steps(); }

  // Behind the batches that were handed out.
  LoaderState state() const;
  Status load(const LoaderState& state);
  Status set_epoch(std::uint64_t epoch);
  Status set_shares(std::vector<MixShare> shares);

  LoaderStats stats() const MR_EXCLUDES(mutex_);
  DeliveryDigest digest() const MR_EXCLUDES(mutex_);

 private:
  BatchLoader(std::shared_ptr<BatchEngine> engine, JobCursor cursor, const LoaderOptions& options);
  // Everything that was read ahead is of another order now.
  void restart(JobCursor cursor) MR_EXCLUDES(mutex_);
  Prefetcher& prefetcher() MR_EXCLUDES(mutex_);
  void note(const Prefetcher::Taken& taken) MR_EXCLUDES(mutex_);
  // What the time from `entered` to `now` was for.
  void note_times(TimePoint entered, TimePoint now) MR_EXCLUDES(mutex_);
  void note_losses(const std::vector<SampleLoss>& losses) MR_REQUIRES(mutex_);
  void note_place() MR_EXCLUDES(mutex_);
  Result<Prefetcher::Next> wait(Prefetcher& prefetcher, TimePoint deadline) MR_EXCLUDES(mutex_);
  void note_stuck(const Prefetcher& prefetcher) MR_EXCLUDES(mutex_);

  const std::shared_ptr<BatchEngine> engine_;
  const LoaderOptions options_;
  JobCursor cursor_;  // Behind what was handed out.
  bool epoch_ended_ = false;
  std::optional<TimePoint> left_;  // When next() last returned.
  // When the wait for the next batch is long. It stays over calls that come back without one, since
  // callers who look for signals wait in slices.
  std::optional<TimePoint> alarm_;
  LoaderReport unreported_;  // Times since the last report.
  TimePoint reported_;

  mutable Mutex mutex_;
  std::shared_ptr<Prefetcher> prefetcher_ MR_GUARDED_BY(mutex_);
  LoaderStats stats_ MR_GUARDED_BY(mutex_);
  DeliveryDigest digest_ MR_GUARDED_BY(mutex_);
  LostSamples lost_ MR_GUARDED_BY(mutex_);  // Of the job, as far as this rank knows.
};

}  // namespace millrace
