#include "frontends/nfs4/nfs_read_budget.h"

#include <cassert>
#include <optional>
#include <utility>

namespace millrace {

struct NfsReadBudget::State : std::enable_shared_from_this<State> {
  struct Request {
    NfsConnectionId connection;
    std::uint64_t bytes = 0;
    Executor* executor = nullptr;
    Then then;
  };
  // Gives back when it goes.
  struct Holding {
    Holding(std::shared_ptr<State> state, NfsConnectionId connection, std::uint64_t bytes)
        : state_(std::move(state)), connection_(connection), bytes_(bytes) {}
    Holding(const Holding&) = delete;
    Holding& operator=(const Holding&) = delete;
    ~Holding() { state_->give_back(connection_, bytes_); }

   private:
    const std::shared_ptr<State> state_;
    const NfsConnectionId connection_;
    const std::uint64_t bytes_;
  };

  explicit State(std::uint64_t budget) : bytes_max(budget) {}

  bool fits(const Request& request) MR_REQUIRES(mutex) {
    const auto found = by_connection.find(request.connection);
    const std::uint64_t own = found == by_connection.end() ? 0 : found->second;
    const std::uint64_t left_by_others = bytes_max - (in_use - own);
    return in_use + request.bytes <= bytes_max &&
           (own == 0 || own + request.bytes <= left_by_others / 2);
  }
  void take(const Request& request) MR_REQUIRES(mutex) {
    in_use += request.bytes;
    by_connection[request.connection] += request.bytes;
  }
  Share share_of(const Request& request) {
    return std::make_shared<Holding>(shared_from_this(), request.connection, request.bytes);
  }
  bool take_or_wait(Request& request) MR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    if (waiting.empty() && fits(request)) {
      take(request);
      return true;
    }
    waiting.push_back(std::move(request));
    return false;
  }
  // The next one that can be served, and who waits behind a full connection is passed over.
  std::optional<Request> next() MR_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    for (auto request = waiting.begin(); request != waiting.end(); ++request) {
      if (in_use + request->bytes > bytes_max) break;
      if (!fits(*request)) continue;
      Request chosen = std::move(*request);
      waiting.erase(request);
      take(chosen);
      return chosen;
    }
    return std::nullopt;
  }
  void give_back(NfsConnectionId connection, std::uint64_t bytes) MR_EXCLUDES(mutex) {
    {
      MutexLock lock(mutex);
      in_use -= bytes;
      const auto found = by_connection.find(connection);
      if ((found->second -= bytes) == 0) by_connection.erase(found);
      if (waiting.empty()) return;
    }
    serve();
  }
  void serve() MR_EXCLUDES(mutex) {
    while (std::optional<Request> request = next()) {
      Share share = share_of(*request);
      request->executor->resume([then = std::move(request->then),
                                 share = std::move(share)]() mutable { then(std::move(share)); });
    }
  }

  const std::uint64_t bytes_max;
  mutable Mutex mutex;
  std::uint64_t in_use MR_GUARDED_BY(mutex) = 0;
  std::unordered_map<NfsConnectionId, std::uint64_t> by_connection MR_GUARDED_BY(mutex);
  std::deque<Request> waiting MR_GUARDED_BY(mutex);
};

NfsReadBudget::NfsReadBudget(std::uint64_t bytes_max)
    : state_(std::make_shared<State>(bytes_max)) {}

void NfsReadBudget::reserve(NfsConnectionId connection, std::uint64_t bytes, Executor& executor,
                            Then then) {
  assert(bytes <= state_->bytes_max / 2);
  State::Request request{connection, bytes, &executor, std::move(then)};
  if (state_->take_or_wait(request)) {
    request.then(state_->share_of(request));
  } else {
    // A connection that is full may have made others wait behind it.
    state_->serve();
  }
}

std::uint64_t NfsReadBudget::bytes_in_use() const {
  MutexLock lock(state_->mutex);
  return state_->in_use;
}

std::size_t NfsReadBudget::waiting() const {
  MutexLock lock(state_->mutex);
  return state_->waiting.size();
}

}  // namespace millrace
