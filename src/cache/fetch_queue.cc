#include "cache/fetch_queue.h"

#include <cassert>
#include <utility>

#include <fmt/format.h>

#include "objectstore/paused_call.h"

namespace millrace {
namespace {

// How long a fetch waits when the memory pool is at its ceiling: its readers return memory soon.
constexpr Duration kMemoryPause = std::chrono::milliseconds(5);

}  // namespace

// Lives from submit() until its data is let go of.
class FetchQueue::Fetch {
 public:
  Fetch(FetchQueue& owner, Urgency how_urgent, std::shared_ptr<ObjectStore> from, GetRequest what,
        std::uint32_t which_attempt, Done when_done, Gate::Pass inside)
      : queue(owner),
        bytes(what.range->length),
        urgency(how_urgent),
        store(std::move(from)),
        request(std::move(what)),
        attempt(which_attempt),
        done(std::move(when_done)),
        pass(std::move(inside)) {}
  ~Fetch() { queue.leave(*this); }

  enum class State : std::uint8_t {
    kQueued,
    kFlying,   // Counts as a request and as bytes.
    kHeld,     // Answered; its bytes still count.
    kRefused,  // Never counted.
  };

  FetchQueue& queue;
  const std::uint64_t bytes;
  // Changed under the queue's mutex only.
  Urgency urgency;
  bool counts_as_speculative = false;
  State state = State::kQueued;

  const std::shared_ptr<ObjectStore> store;
  const GetRequest request;
  const std::uint32_t attempt;
  TimePoint deadline{};
  Done done;
  Gate::Pass pass;
};

FetchQueue::FetchQueue(FetchQueueOptions options, Executor& executor, Clock& clock,
                       Metrics& metrics, std::function<void()> free_memory)
    : options_(options),
      free_memory_(std::move(free_memory)),
      executor_(executor),
      clock_(clock),
      bytes_gauge_(metrics.gauge(MetricId::kCacheFetchBytesInFlight)),
      requests_gauge_(metrics.gauge(MetricId::kCacheFetchesInFlight)),
      cancellation_(std::make_shared<Cancellation>()) {}

FetchQueue::~FetchQueue() { close(); }

void FetchQueue::close() {
  std::deque<FetchPtr> unstarted;
  {
    MutexLock lock(mutex_);
    unstarted.swap(demanded_);
    unstarted.insert(unstarted.end(), speculative_.begin(), speculative_.end());
    speculative_.clear();
    speculative_bytes_queued_ = 0;
    for (const FetchPtr& fetch : unstarted)
      fetch->state = Fetch::State::kRefused;
  }
  cancellation_->request();
  for (const FetchPtr& fetch : unstarted)
    land(fetch, failure(StatusCode::kCancelled, "the cache is closing"));
  unstarted.clear();
  gate_.close();
}

Result<FetchQueue::Ticket> FetchQueue::submit(Urgency urgency, std::shared_ptr<ObjectStore> store,
                                              GetRequest request, std::uint32_t attempt,
                                              Done done) {
  assert(request.range.has_value());
  std::optional<Gate::Pass> pass = gate_.enter();
  if (!pass || cancellation_->requested()) {
    return failure(StatusCode::kCancelled, "the cache is closing");
  }
  auto fetch = std::make_shared<Fetch>(*this, urgency, std::move(store), std::move(request),
                                       attempt, std::move(done), std::move(*pass));
  {
    MutexLock lock(mutex_);
    fetch->state = Fetch::State::kRefused;
    if (urgency == Urgency::kDemanded) {
      if (demanded_.size() >= options_.demanded_queued_max) {
        return failure(StatusCode::kResourceExhausted,
                       fmt::format("{} fetches wait already", demanded_.size()));
      }
      demanded_.push_back(fetch);
    } else {
      if (speculative_bytes_queued_ + fetch->bytes > options_.speculative_bytes_queued_max) {
        return failure(StatusCode::kResourceExhausted, "enough is being fetched ahead already");
      }
      speculative_bytes_queued_ += fetch->bytes;
      speculative_.push_back(fetch);
    }
    fetch->state = Fetch::State::kQueued;
  }
  Ticket ticket = fetch;
  fetch.reset();
  start_some();
  return ticket;
}

void FetchQueue::promote(const Ticket& ticket) {
  {
    const FetchPtr fetch = ticket.lock();
    if (!fetch) return;
    MutexLock lock(mutex_);
    if (fetch->urgency == Urgency::kDemanded) return;
    fetch->urgency = Urgency::kDemanded;
    if (fetch->state == Fetch::State::kQueued) {
      std::erase(speculative_, fetch);
      speculative_bytes_queued_ -= fetch->bytes;
      demanded_.push_back(fetch);
    }
  }
  start_some();
}

bool FetchQueue::fits(const Fetch& fetch) const {
  if (requests_ == 0 && bytes_ == 0) return true;
  if (requests_ >= options_.requests_in_flight_max) return false;
  if (bytes_ + fetch.bytes > options_.bytes_in_flight_max) return false;
  if (fetch.urgency == Urgency::kDemanded) return true;
  return speculative_requests_ + options_.requests_in_flight_max / 8 <
             options_.requests_in_flight_max &&
         speculative_bytes_ + fetch.bytes <=
             options_.bytes_in_flight_max - options_.bytes_in_flight_max / 8;
}

FetchQueue::FetchPtr FetchQueue::take_next() {
  std::deque<FetchPtr>& queue = demanded_.empty() ? speculative_ : demanded_;
  if (queue.empty() || !fits(*queue.front())) return nullptr;
  FetchPtr fetch = std::move(queue.front());
  queue.pop_front();
  fetch->state = Fetch::State::kFlying;
  ++requests_;
  bytes_ += fetch->bytes;
  if (fetch->urgency == Urgency::kSpeculative) {
    speculative_bytes_queued_ -= fetch->bytes;
    fetch->counts_as_speculative = true;
    ++speculative_requests_;
    speculative_bytes_ += fetch->bytes;
  }
  requests_gauge_.add(1);
  bytes_gauge_.add(static_cast<std::int64_t>(fetch->bytes));
  return fetch;
}

void FetchQueue::start_some() {
  for (;;) {
    FetchPtr fetch;
    {
      MutexLock lock(mutex_);
      fetch = take_next();
    }
    if (!fetch) return;
    fetch->deadline = clock_.now() + options_.timeout;
    start(std::move(fetch));
  }
}

RequestContext FetchQueue::context_of(const Fetch& fetch) const {
  return RequestContext(fetch.deadline, "millrace")
      .with_cancellation(cancellation_)
      .with_attempt(fetch.attempt);
}

void FetchQueue::start(FetchPtr fetch) {
  const RequestContext context = context_of(*fetch);
  ObjectStore& store = *fetch->store;
  GetRequest request = fetch->request;
  store.get_range(context, std::move(request),
                  Completion<GetResult>(executor_, [this, fetch](Result<GetResult> result) mutable {
                    // The callback goes on living in its executor's queue entry for a while; the
                    // fetch must not.
                    const FetchPtr landed = std::move(fetch);
                    land(landed, std::move(result));
                  }));
}

void FetchQueue::land(const FetchPtr& fetch, Result<GetResult> result) {
  if (!result && result.error().code() == StatusCode::kResourceExhausted &&
      clock_.now() < fetch->deadline && !cancellation_->requested()) {
    free_memory_();
    pause_call(clock_, executor_, context_of(*fetch), clock_.now() + kMemoryPause,
               [this, held = FetchPtr(fetch)](Status status) mutable {
                 const FetchPtr paused = std::move(held);
                 if (status.ok()) {
                   start(paused);
                 } else {
                   land(paused, failure(std::move(status)));
                 }
               });
    return;
  }
  {
    MutexLock lock(mutex_);
    if (fetch->state == Fetch::State::kFlying) {
      fetch->state = Fetch::State::kHeld;
      --requests_;
      requests_gauge_.add(-1);
      if (fetch->counts_as_speculative) --speculative_requests_;
    }
  }
  Done done = std::move(fetch->done);
  if (!result) {
    done(failure(std::move(result).error()));
  } else if (result->data.size() != fetch->bytes) {
    done(failure(
        StatusCode::kCorruption,
        fmt::format("{} gave {} bytes of '{}' where {} were asked for", fetch->store->describe(),
                    result->data.size(), fetch->request.key.value(), fetch->bytes)));
  } else {
    done(Fetched(std::move(result->data), fetch));
  }
  start_some();
}

void FetchQueue::leave(const Fetch& fetch) {
  {
    MutexLock lock(mutex_);
    if (fetch.state != Fetch::State::kHeld) return;
    bytes_ -= fetch.bytes;
    bytes_gauge_.add(-static_cast<std::int64_t>(fetch.bytes));
    if (fetch.counts_as_speculative) speculative_bytes_ -= fetch.bytes;
  }
  start_some();
}

}  // namespace millrace
