#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"

namespace millrace {

// Answers of the store that may be some seconds old. When the store cannot be reached, an answer of
// any age is better than none. Failures are not kept. Safe from any thread; two who ask at once may
// both go to the store.
template <class Value>
class Recent {
 public:
  Recent(Clock& clock, Duration lifetime, std::size_t entries_max)
      : clock_(clock), lifetime_(lifetime), entries_max_(entries_max) {}

  Result<Value> get(const std::string& name, const std::function<Result<Value>()>& ask) {
    const TimePoint now = clock_.now();
    std::optional<Answer> known = find(name);
    if (known && now - known->since < lifetime_) return known->value;
    Result<Value> value = ask();
    if (!value && known && is_about_the_way(value.error())) {
      log_warn("the store cannot be asked; going on with what it said before",
               {{"about", name}, {"error", value.error().to_string()}});
      return known->value;
    }
    MutexLock lock(mutex_);
    if (!value) {
      answers_.erase(name);
      return value;
    }
    if (answers_.size() >= entries_max_) answers_.clear();
    answers_.insert_or_assign(name, Answer{*value, now});
    return value;
  }

 private:
  struct Answer {
    Value value;
    TimePoint since;
  };

  // The store did not answer, so it did not say anything else either.
  static bool is_about_the_way(const Status& status) {
    return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kThrottled ||
           status.code() == StatusCode::kDeadlineExceeded;
  }

  std::optional<Answer> find(const std::string& name) {
    MutexLock lock(mutex_);
    const auto found = answers_.find(name);
    if (found == answers_.end()) return std::nullopt;
    return found->second;
  }

  Clock& clock_;
  const Duration lifetime_;
  const std::size_t entries_max_;
  Mutex mutex_;
  std::map<std::string, Answer> answers_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
