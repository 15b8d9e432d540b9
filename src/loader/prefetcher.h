#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_reader.h"
#include "loader/job_cursor.h"
#include "loader/read_planner.h"

namespace millrace {

struct PrefetchOptions {
  std::size_t batches = 4;  // Read at a time or waiting to be taken.
  FaultPolicy faults = {};
  Duration batch_timeout = std::chrono::minutes(5);
  // Whom reads count for.
  std::shared_ptr<const Caller> caller = std::make_shared<const Caller>(Caller{"loader", ""});
};

// What a wait for the next batch ends with.
enum class NextKind : std::uint8_t {
  kBatch,
  kEndOfEpoch,  // Told once.
  kNotYet,      // The time is over. Nothing is lost: the next wait is for the same batch.
};

// Batches of one rank, read ahead in order by threads of its own, over the ends of epochs. What
// will be read later is announced to the engine.
//
// 1. Slots are in the order of the cursor; at most `batches` of them are not yet taken.
// 2. The first batch is read alone, and nothing is announced before it is there: what would be
//    fetched beside it would delay it.
// 3. A slot that failed stays where it is. The call of next() after one that told a failure has all
//    that failed read again, since the caller may have mended what was wrong. So what is told is a
//    read that began after the last failure was told.
//
// Lifecycle: reads from its construction on; destruction calls off what is being read. next() needs
// one thread at a time, the rest is safe from any.
class Prefetcher {
 public:
  struct Taken {
    CursorStep step = {};
    ReadBatch read = {};
  };
  struct Next {
    NextKind kind = NextKind::kBatch;
    Taken taken = {};  // Of kBatch.
  };

  // The engine outlives it.
  Prefetcher(BatchEngine& engine, JobCursor from, const PrefetchOptions& options,
             Clock& clock = system_clock());
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits until `deadline` at most. kCancelled by cancel() loses nothing. Other failures are the
  // batch's, which the next call tries again.
  Result<Next> next(TimePoint deadline);
  // Ends a next() that waits, or the next one that would.
  void cancel();

  std::size_t ready() const;
  // Where the batch is that next() waits for, in a sentence.
  std::string where() const;

 private:
  enum class SlotState : std::uint8_t { kToRead, kReading, kReady, kFailed, kEndOfEpoch };
  struct Slot {
    CursorStep step = {};
    std::shared_ptr<const JobEpoch> order = {};
    SlotState state = SlotState::kToRead;
    TimePoint begun = {};
    std::uint64_t retries = 0;  // When it was begun.
    ReadBatch read = {};
    Status failure = {};
  };

  void read_batches();
  void plan_reads();
  // False when it is to stop.
  bool wait_for_first_batch();
  void begin_reading_ahead();
  // Null when all that may be read is being read.
  Slot* take_slot() MR_REQUIRES(mutex_);
  void add_slots() MR_REQUIRES(mutex_);
  void retry_failed() MR_REQUIRES(mutex_);
  void note_progress() MR_REQUIRES(mutex_);
  RequestContext context(TimePoint deadline) const;

  BatchEngine& engine_;
  const PrefetchOptions options_;
  Clock& clock_;
  const std::shared_ptr<Cancellation> cancellation_;
  FailureRow row_;

  mutable Mutex mutex_;
  CondVar changed_;
  JobCursor ahead_ MR_GUARDED_BY(mutex_);
  std::deque<Slot> slots_ MR_GUARDED_BY(mutex_);  // Pointers to elements stay while they are in it.
  bool is_over_ MR_GUARDED_BY(mutex_) = false;    // No further epoch can begin.
  std::size_t batches_in_slots_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t taken_samples_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t read_samples_ MR_GUARDED_BY(mutex_) = 0;  // Without a gap from the beginning.
  bool first_taken_ MR_GUARDED_BY(mutex_) = false;
  bool has_first_ MR_GUARDED_BY(mutex_) = false;  // Or it has failed.
  bool reads_ahead_ MR_GUARDED_BY(mutex_) = false;
  bool failure_told_ MR_GUARDED_BY(mutex_) = false;  // By the last next().
  std::uint64_t retries_ MR_GUARDED_BY(mutex_) = 0;  // So often what failed was begun again.
  bool cancelled_ MR_GUARDED_BY(mutex_) = false;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
  ReadPlanner planner_;  // The planning thread's own.
  std::vector<std::thread> threads_;
};

}  // namespace millrace
