#include "daemon/store_watch.h"

#include "base/log.h"
#include "base/request_context.h"

namespace millrace {
namespace {

constexpr Duration kAnswerMax = std::chrono::seconds(5);
constexpr Duration kPauseGood = std::chrono::seconds(60);
constexpr Duration kPauseBad = std::chrono::seconds(5);

// A refusal is an answer too.
bool is_answer(const Status& status) {
  return status.code() != StatusCode::kUnavailable && status.code() != StatusCode::kThrottled &&
         status.code() != StatusCode::kDeadlineExceeded && status.code() != StatusCode::kCancelled;
}

}  // namespace

StoreWatch::StoreWatch(ObjectStore& store, Clock& clock)
    : store_(store), clock_(clock), thread_([this] { run(); }) {}

StoreWatch::~StoreWatch() {
  stop_->request();
  thread_.join();
}

StoreWatch::State StoreWatch::state() const {
  MutexLock lock(mutex_);
  return state_;
}

void StoreWatch::run() {
  do {
    const Duration pause = ask() ? kPauseGood : kPauseBad;
    clock_.sleep_until(clock_.now() + pause, stop_.get());
  } while (!stop_->requested());
}

bool StoreWatch::ask() {
  const RequestContext context =
      RequestContext(clock_.now() + kAnswerMax, "millrace").with_cancellation(stop_);
  const auto page = store_.list(context, {.prefix = ".millrace/", .entries_max = 1});
  const Status status = page ? Status() : page.error();
  if (stop_->requested()) return false;
  const bool answers = is_answer(status);
  // Only this thread writes it; whoever sees the new state finds it in the log.
  const State before = state();
  if (!answers && (before.answers || !before.asked)) {
    log_warn("the store does not answer; what is cached is served, and it is asked again",
             {{"store", store_.describe()}, {"error", status.to_string()}});
  } else if (answers && before.asked && !before.answers) {
    log_info("the store answers again", {{"store", store_.describe()}});
  }
  MutexLock lock(mutex_);
  if (!state_.asked || state_.answers != answers) state_.since = clock_.wall_now();
  state_.asked = true;
  state_.answers = answers;
  state_.error = status.message();
  return answers;
}

}  // namespace millrace
