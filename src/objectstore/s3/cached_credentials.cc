#include "objectstore/s3/cached_credentials.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/executor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "objectstore/s3/credentials_time.h"

namespace millrace::s3 {

struct CachedCredentials::State {
  mutable Mutex mutex;
  CondVar changed;
  std::shared_ptr<const Credentials> current MR_GUARDED_BY(mutex);
  WallTime refresh_at MR_GUARDED_BY(mutex) = WallTime::min();
  bool rejected MR_GUARDED_BY(mutex) = false;  // By the store, before their time.
  bool refreshing MR_GUARDED_BY(mutex) = false;
  TimePoint no_refresh_before MR_GUARDED_BY(mutex) = TimePoint::min();
  // How the last fetch failed. Success when it did not, or when it failed only because its caller
  // ran out of time or was cancelled: that is no outcome for anybody else.
  Status last_failure MR_GUARDED_BY(mutex);

  bool valid(const Clock& clock) const MR_REQUIRES(mutex) {
    return current != nullptr && !rejected &&
           (!current->expires || clock.wall_now() < *current->expires);
  }
  // Whether the caller may take what is at hand, with no fetch of its own.
  bool good(const Clock& clock) const MR_REQUIRES(mutex) {
    if (!valid(clock)) return false;
    return clock.wall_now() < refresh_at || refreshing || clock.now() < no_refresh_before;
  }
  void accept(Credentials fetched, WallTime refresh_when) MR_REQUIRES(mutex) {
    current = std::make_shared<const Credentials>(std::move(fetched));
    refresh_at = refresh_when;
    rejected = false;
    last_failure = Status();
  }
};

// Wakes whoever waits for the state when the context ends, by time or by cancellation.
class CachedCredentials::WakeUp {
 public:
  WakeUp(const std::shared_ptr<State>& state, Clock& clock, const RequestContext& context)
      : cancellation_(context.shared_cancellation()) {
    const auto wake = [state] {
      // The lock makes sure that a waiter has either not checked yet or is really waiting.
      MutexLock lock(state->mutex);
      state->changed.notify_all();
    };
    if (context.has_deadline()) {
      timer_ = clock.schedule(context.deadline(), inline_executor(), wake);
    }
    subscription_ = cancellation_->subscribe(wake);
  }
  ~WakeUp() {
    if (subscription_ != 0) cancellation_->unsubscribe(subscription_);
  }
  WakeUp(const WakeUp&) = delete;
  WakeUp& operator=(const WakeUp&) = delete;

 private:
  const std::shared_ptr<Cancellation> cancellation_;
  std::unique_ptr<Clock::Timer> timer_;
  Cancellation::CallbackId subscription_ = 0;
};

CachedCredentials::CachedCredentials(std::unique_ptr<CredentialProvider> provider, Clock& clock,
                                     Random& random, CachedCredentialsOptions options)
    : provider_(std::move(provider)),
      clock_(clock),
      random_(random),
      options_(options),
      state_(std::make_shared<State>()) {}

CachedCredentials::~CachedCredentials() = default;

Result<std::shared_ptr<const Credentials>> CachedCredentials::get(const RequestContext& context) {
  if (auto fresh = get_if_fresh()) return fresh;
  return wait_or_refresh(context);
}

std::shared_ptr<const Credentials> CachedCredentials::get_if_fresh() {
  MutexLock lock(state_->mutex);
  return state_->good(clock_) ? state_->current : nullptr;
}

void CachedCredentials::invalidate(std::string_view access_key) {
  MutexLock lock(state_->mutex);
  if (state_->current != nullptr && state_->current->access_key == access_key) {
    state_->rejected = true;
  }
}

Result<std::shared_ptr<const Credentials>> CachedCredentials::wait_or_refresh(
    const RequestContext& context) {
  // Declared first, so that it is undone without the lock, which its callbacks take.
  const WakeUp wake_up(state_, clock_, context);
  State& state = *state_;
  MutexLock lock(state.mutex);
  bool waited = false;
  while (true) {
    if (state.good(clock_)) return state.current;
    if (!state.refreshing) break;
    MR_RETURN_IF_ERROR(context.check(clock_));
    waited = true;
    state.changed.wait(state.mutex);
  }
  // Those who waited share the outcome.
  if (waited && !state.last_failure.ok()) return failure(state.last_failure);

  state.refreshing = true;
  const bool early = state.valid(clock_);
  lock.unlock();
  Result<Credentials> fetched = fetch(context, early);
  const bool gave_up = !context.check(clock_).ok();
  lock.lock();
  state.refreshing = false;
  if (fetched) {
    WallTime refresh_when = WallTime::max();
    if (fetched->expires && *fetched->expires != WallTime::max()) {
      const WallTime now = clock_.wall_now();
      const auto jitter =
          std::chrono::duration_cast<Duration>(options_.refresh_jitter_max * random_.uniform());
      const Duration lead =
          std::min(options_.refresh_early + jitter, (*fetched->expires - now) / 2);
      refresh_when = *fetched->expires - lead;
    }
    state.accept(std::move(*fetched), refresh_when);
  } else {
    state.last_failure = gave_up ? Status() : fetched.error();
    if (!gave_up) state.no_refresh_before = clock_.now() + options_.retry_pause;
  }
  state.changed.notify_all();
  if (state.valid(clock_)) return state.current;
  if (fetched) return failure(StatusCode::kUnavailable, "AWS credentials expired on arrival");
  return failure(fetched.error());
}

Result<Credentials> CachedCredentials::fetch(const RequestContext& context, bool early) {
  const RequestContext limited =
      early ? context.with_deadline(clock_.now() + options_.early_refresh_time_max) : context;
  auto fetched = provider_->fetch(limited);
  if (fetched && fetched->expires && *fetched->expires <= clock_.wall_now()) {
    fetched = failure(StatusCode::kUnauthenticated,
                      fmt::format("the credentials from {} expired at {}: renew them, and check "
                                  "this machine's clock",
                                  fetched->source, format_iso8601(*fetched->expires)));
  }
  if (!fetched) {
    log_warn(early
                 ? "AWS credentials could not be refreshed, the old ones are used until they expire"
                 : "AWS credentials could not be fetched",
             {{"provider", provider_->name()}, {"error", fetched.error().message()}});
  }
  return fetched;
}

}  // namespace millrace::s3
