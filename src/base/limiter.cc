#include "base/limiter.h"

#include <atomic>
#include <cassert>
#include <list>
#include <utility>

#include <fmt/format.h>

#include "base/executor.h"
#include "base/mutex.h"
#include "base/units.h"

namespace millrace {

namespace {

// One blocked reserve(). All but `amount` is guarded by the limiter's mutex.
struct LimiterWaiter {
  explicit LimiterWaiter(std::uint64_t a) : amount(a) {}

  const std::uint64_t amount;
  bool granted = false;
  bool given_up = false;  // Cancelled, or the deadline came.
  CondVar changed;
};

}  // namespace

struct Limiter::State {
  State(std::string n, Unit u, std::uint64_t c, Clock& k)
      : name(std::move(n)), unit(u), capacity(c), clock(k) {}

  std::string describe(std::uint64_t amount) const {
    return unit == Unit::kBytes ? format_size(amount) : std::to_string(amount);
  }
  Status check_amount(std::uint64_t amount) const;
  // Takes `amount` if it is free.
  bool take(std::uint64_t amount);
  // Takes `amount` if that overtakes nobody. Without the lock: every buffer of a warm read comes
  // through here.
  bool try_take(std::uint64_t amount) { return (amount == 0 || waiting == 0) && take(amount); }
  // Gives what is free to those at the front of the line.
  void grant() MR_REQUIRES(mutex);
  void give_back(std::uint64_t amount);
  void give_up(LimiterWaiter& waiter);
  // Waits in line; false when the waiter gave up first.
  bool wait(const std::shared_ptr<LimiterWaiter>& waiter);

  // Constant after construction.
  const std::string name;
  const Unit unit;
  const std::uint64_t capacity;
  Clock& clock;

  // Who waits raises `waiting` before it looks at `in_use`, and who gives back lowers `in_use`
  // before it looks at `waiting`, all in one order: so one of the two sees the other.
  std::atomic<std::uint64_t> in_use = 0;
  std::atomic<std::uint32_t> waiting = 0;  // The length of the line.

  Mutex mutex;
  std::list<std::shared_ptr<LimiterWaiter>> line MR_GUARDED_BY(mutex);
};

Status Limiter::State::check_amount(std::uint64_t amount) const {
  if (amount <= capacity) return {};
  return {StatusCode::kInvalidArgument, fmt::format("{} asked of limit '{}', which is {} in all",
                                                    describe(amount), name, describe(capacity))};
}

bool Limiter::State::take(std::uint64_t amount) {
  std::uint64_t used = in_use;
  do {
    if (amount > capacity - used) return false;
  } while (!in_use.compare_exchange_weak(used, used + amount));
  return true;
}

void Limiter::State::grant() {
  while (!line.empty() && take(line.front()->amount)) {
    LimiterWaiter& waiter = *line.front();
    waiter.granted = true;
    waiter.changed.notify_all();
    line.pop_front();
    --waiting;
  }
}

void Limiter::State::give_back(std::uint64_t amount) {
  [[maybe_unused]] const std::uint64_t before = in_use.fetch_sub(amount);
  assert(amount <= before);
  if (waiting == 0) return;
  MutexLock lock(mutex);
  grant();
}

void Limiter::State::give_up(LimiterWaiter& waiter) {
  MutexLock lock(mutex);
  waiter.given_up = true;
  waiter.changed.notify_all();
}

bool Limiter::State::wait(const std::shared_ptr<LimiterWaiter>& waiter) {
  MutexLock lock(mutex);
  ++waiting;
  line.push_back(waiter);
  grant();
  while (!waiter->granted && !waiter->given_up)
    waiter->changed.wait(mutex);
  if (waiter->granted) return true;
  line.remove(waiter);
  --waiting;
  grant();  // It may have stood before smaller ones that fit.
  return false;
}

Limiter::Reservation::Reservation(std::shared_ptr<State> state, std::uint64_t amount)
    : state_(std::move(state)), amount_(amount) {}

Limiter::Reservation::Reservation(Reservation&& other) noexcept
    : state_(std::move(other.state_)), amount_(std::exchange(other.amount_, 0)) {}

Limiter::Reservation& Limiter::Reservation::operator=(Reservation&& other) noexcept {
  if (this != &other) {
    shrink_to(0);
    state_ = std::move(other.state_);
    amount_ = std::exchange(other.amount_, 0);
  }
  return *this;
}

Limiter::Reservation::~Reservation() { shrink_to(0); }

void Limiter::Reservation::shrink_to(std::uint64_t amount) {
  assert(amount <= amount_);
  if (amount == amount_) return;
  state_->give_back(std::exchange(amount_, amount) - amount);
}

Limiter::Limiter(std::string name, Unit unit, std::uint64_t capacity, Clock& clock)
    : state_(std::make_shared<State>(std::move(name), unit, capacity, clock)) {}

Limiter::~Limiter() = default;

Result<Limiter::Reservation> Limiter::try_reserve(std::uint64_t amount) {
  MR_RETURN_IF_ERROR(state_->check_amount(amount));
  if (state_->try_take(amount)) return Reservation(state_, amount);
  return failure(
      StatusCode::kResourceExhausted,
      fmt::format("limit '{}' is reached: {} asked, {} of {} free, {} waiting", state_->name,
                  state_->describe(amount), state_->describe(state_->capacity - state_->in_use),
                  state_->describe(state_->capacity), state_->waiting.load()));
}

Result<Limiter::Reservation> Limiter::reserve(const RequestContext& context, std::uint64_t amount) {
  MR_RETURN_IF_ERROR(state_->check_amount(amount));
  MR_RETURN_IF_ERROR(context.check(state_->clock));
  if (state_->try_take(amount)) return Reservation(state_, amount);
  // Shared with the two that may wake it: a timer may still be firing when this call has returned.
  const auto waiter = std::make_shared<LimiterWaiter>(amount);
  const auto give_up = [state = state_, waiter] { state->give_up(*waiter); };
  std::unique_ptr<Clock::Timer> timer;
  if (context.has_deadline()) {
    timer = state_->clock.schedule(context.deadline(), inline_executor(), give_up);
  }
  const auto subscription = context.cancellation().subscribe(give_up);
  const bool granted = state_->wait(waiter);
  context.cancellation().unsubscribe(subscription);
  if (granted) return Reservation(state_, amount);

  const bool cancelled = context.cancellation().requested();
  return failure(cancelled ? StatusCode::kCancelled : StatusCode::kDeadlineExceeded,
                 fmt::format("{} while waiting for {} of limit '{}'",
                             cancelled ? "cancelled" : "the deadline passed",
                             state_->describe(amount), state_->name));
}

std::uint64_t Limiter::in_use() const { return state_->in_use; }

std::uint64_t Limiter::capacity() const { return state_->capacity; }

}  // namespace millrace
