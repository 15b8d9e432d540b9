#pragma once

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"

namespace millrace {

// True when whoever was asked did not answer, and so did not say anything else either.
inline bool is_unanswered(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kThrottled ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// Answers of a store that may be some seconds old. When the store cannot be reached, an answer of
// any age is better than none. Failures are not kept.
//
// Invariants:
//  1. There are at most `entries_max` answers; the oldest makes room for a new one.
//  2. `by_age_` has the name of each answer once, oldest first.
//  3. For a lifetime after the store did not answer, whoever can do with an old answer does not
//  wait
//     for the store again.
//
// Safe from any thread; two who ask at once may both go to the store.
template <class Value>
class Recent {
 public:
  enum class Age : std::uint8_t { kFresh, kAny };

  Recent(Clock& clock, Duration lifetime, std::size_t entries_max)
      : clock_(clock), lifetime_(lifetime), entries_max_(entries_max) {}

  // What is known and fresh, or what `ask` says.
  Result<Value> get(const std::string& name, const std::function<Result<Value>()>& ask) {
    const TimePoint now = clock_.now();
    std::optional<Known> known = find(name);
    if (known && (is_fresh(known->since, now) || is_away(now))) return known->value;
    Result<Value> value = ask();
    note(value ? Status() : value.error());
    if (!value && known && is_unanswered(value.error())) {
      log_warn("the store cannot be asked; going on with what it said before",
               {{"about", name}, {"error", value.error().to_string()}});
      return known->value;
    }
    if (value) {
      keep(name, *value, now);
    } else {
      forget(name);
    }
    return value;
  }

  // The answer with the greatest name that is not above this one. Steps over those that are not
  // fresh, unless any will do or there are no others to be had.
  std::optional<Value> at_or_before(const std::string& name, Age age) const {
    const TimePoint now = clock_.now();
    const bool any = age == Age::kAny || is_away(now);
    MutexLock lock(mutex_);
    for (auto it = answers_.upper_bound(name); it != answers_.begin();) {
      --it;
      if (any || is_fresh(it->second.known.since, now)) return it->second.known.value;
    }
    return std::nullopt;
  }

  // Asks again about everything; what was known is still better than no answer.
  void age_all() {
    MutexLock lock(mutex_);
    for (auto& [name, answer] : answers_)
      answer.known.since -= lifetime_;
  }

  void forget(const std::string& name) {
    MutexLock lock(mutex_);
    const auto found = answers_.find(name);
    if (found == answers_.end()) return;
    by_age_.erase(found->second.place);
    answers_.erase(found);
  }

 private:
  struct Known {
    Value value;
    TimePoint since;
  };
  struct Answer {
    Known known;
    std::list<std::string>::iterator place;
  };

  bool is_fresh(TimePoint since, TimePoint now) const { return now - since < lifetime_; }

  bool is_away(TimePoint now) const {
    MutexLock lock(mutex_);
    return unanswered_ && is_fresh(*unanswered_, now);
  }

  // After the question, which may have taken long.
  void note(const Status& status) {
    const TimePoint now = clock_.now();
    MutexLock lock(mutex_);
    unanswered_ = is_unanswered(status) ? std::optional(now) : std::nullopt;
  }

  std::optional<Known> find(const std::string& name) const {
    MutexLock lock(mutex_);
    const auto found = answers_.find(name);
    if (found == answers_.end()) return std::nullopt;
    return found->second.known;
  }

  // `since` is from before the question: the answer may be as old as that.
  void keep(const std::string& name, const Value& value, TimePoint since) {
    MutexLock lock(mutex_);
    const auto found = answers_.find(name);
    if (found != answers_.end()) {
      found->second.known = {value, since};
      by_age_.splice(by_age_.end(), by_age_, found->second.place);
      return;
    }
    if (answers_.size() >= entries_max_) {
      answers_.erase(by_age_.front());
      by_age_.pop_front();
    }
    by_age_.push_back(name);
    answers_.emplace(name, Answer{{value, since}, std::prev(by_age_.end())});
  }

  Clock& clock_;
  const Duration lifetime_;
  const std::size_t entries_max_;
  mutable Mutex mutex_;
  std::map<std::string, Answer> answers_ MR_GUARDED_BY(mutex_);
  std::list<std::string> by_age_ MR_GUARDED_BY(mutex_);
  // When the store last did not answer, if it has not answered since.
  std::optional<TimePoint> unanswered_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
