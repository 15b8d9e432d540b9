#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"

namespace millrace {

struct FetchQueueOptions {
  // Bytes asked for whose fetch was not let go of yet, so what waits for the disk counts as well.
  std::uint64_t bytes_in_flight_max = 192 * kMiB;
  std::uint32_t requests_in_flight_max = 96;
  // Speculative fetches beyond this are refused rather than queued. It is what some jobs have
  // planned; what waits takes no memory yet.
  std::uint64_t speculative_bytes_queued_max = 4 * kGiB;
  std::uint32_t demanded_queued_max = 65536;
  // One fetch, all attempts of the store below included.
  Duration timeout = std::chrono::seconds(60);
};

enum class Urgency : std::uint8_t { kDemanded, kSpeculative };

// The one way from the cache to its stores: a bounded number of GETs and bytes at a time.
//
// Invariants:
//  1. Bytes in flight never exceed the limit, but for a single fetch that is larger than it.
//  2. A speculative fetch starts only when no demanded one waits, and never takes the last eighth
//     of requests or bytes: a demanded one finds room at once.
//  3. Every fetch is answered exactly once, on `executor`, or in close() if it had not started.
//
// Executor, clock, metrics and stores must outlive the queue. All methods are safe from any thread.
class FetchQueue {
  class Fetch;

 public:
  // What came, and its share of the limit, which returns when this goes. Move-only.
  class Fetched {
   public:
    Fetched(Slice data, std::shared_ptr<Fetch> fetch)
        : data_(std::move(data)), fetch_(std::move(fetch)) {}
    const Slice& data() const { return data_; }

   private:
    Slice data_;
    std::shared_ptr<Fetch> fetch_;
  };
  using Done = std::move_only_function<void(Result<Fetched>)>;
  // Names a fetch for promote().
  using Ticket = std::weak_ptr<Fetch>;

  // `free_memory` is called, on the executor, when a store found none.
  FetchQueue(
      FetchQueueOptions options, Executor& executor, Clock& clock, Metrics& metrics,
      std::function<void()> free_memory = [] {});
  // Calls off what is queued or in flight, and waits until all of it was answered.
  ~FetchQueue();

  // Fetches `request.range`, which must be set. kResourceExhausted, and `done` is not called, when
  // the queue is full. `attempt` above 0 asks for another connection.
  Result<Ticket> submit(Urgency urgency, std::shared_ptr<ObjectStore> store, GetRequest request,
                        std::uint32_t attempt, Done done);
  // Somebody waits for it now.
  void promote(const Ticket& ticket);

  // Refuses new fetches, cancels the others and waits for their answers.
  void close();

 private:
  using FetchPtr = std::shared_ptr<Fetch>;

  void start_some();
  FetchPtr take_next() MR_REQUIRES(mutex_);
  bool fits(const Fetch& fetch) const MR_REQUIRES(mutex_);
  RequestContext context_of(const Fetch& fetch) const;
  void start(FetchPtr fetch);
  void land(const FetchPtr& fetch, Result<GetResult> result);
  void leave(const Fetch& fetch);

  const FetchQueueOptions options_;
  const std::function<void()> free_memory_;
  Executor& executor_;
  Clock& clock_;
  Gauge& bytes_gauge_;
  Gauge& requests_gauge_;
  const std::shared_ptr<Cancellation> cancellation_;
  Gate gate_;

  Mutex mutex_;
  std::deque<FetchPtr> demanded_ MR_GUARDED_BY(mutex_);
  std::deque<FetchPtr> speculative_ MR_GUARDED_BY(mutex_);
  std::uint64_t speculative_bytes_queued_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint32_t requests_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t speculative_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint32_t speculative_requests_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
