#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "base/at_hand.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

// True when whoever was asked did not answer, and so did not say anything else either.
inline bool is_unanswered(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kThrottled ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// How Recent asks again for what it has an old answer to.
struct RecentRefresh {
  // Asks beside whoever wants to know, and may block for long. Null: whoever wants to know asks,
  // and waits for as long as its request may.
  Executor* executor = nullptr;
  // How long an old answer is held back for the sake of a new one, from when it is asked for; in
  // real time, whatever clock the answers age by.
  Duration patience = std::chrono::seconds(1);
};

// How long somebody waits for an answer where there is no old one.
enum class RecentWait : std::uint8_t {
  kForAnswer,  // For as long as the request may.
  kBriefly,    // For the patience of the refresh, or not at all: there is a way without.
};

// Answers of a store that may be some seconds old. When the store cannot be reached, an answer of
// any age is better than none, and better than waiting for long. Failures are not kept.
//
// Invariants:
//  1. There are at most `entries_max` answers; the oldest makes room for a new one.
//  2. `by_age_` has the name of each answer once, oldest first.
//  3. For a lifetime after the store did not answer, whoever can do with an old answer does not
//     wait for the store again.
//  4. A question that outlasts the patience goes on, and its answer is kept. Until it ends, whoever
//     can do with an old answer neither waits nor asks anything else.
//  5. A thread that takes only what is at hand never asks by itself. Where somebody else asks for
//     it, it is refused until there is an answer or the patience is over.
//
// Safe from any thread; two who ask at once for what is not known may both go to the store. The
// destructor calls off what is being asked, and waits for it.
template <class Value>
class Recent {
 public:
  enum class Age : std::uint8_t { kFresh, kAny };
  // Asks the store, for as long as the context allows. May outlive the call of get(), so it owns
  // what it uses, or refers to what outlives the Recent.
  using Ask = std::function<Result<Value>(const RequestContext& context)>;

  Recent(Clock& clock, Duration lifetime, std::size_t entries_max, RecentRefresh refresh = {})
      : clock_(clock), lifetime_(lifetime), entries_max_(entries_max), refresh_(refresh) {}
  ~Recent() {
    stop_->request();
    MutexLock lock(mutex_);
    // Those that wait for a thread may do so for as long as another store hangs.
    std::erase_if(under_way_, [](const auto& question) { return question->take_up(); });
    while (!under_way_.empty())
      question_ended_.wait(mutex_);
  }
  Recent(const Recent&) = delete;
  Recent& operator=(const Recent&) = delete;

  // What is known and fresh, or what `ask` says; `old` is better than no answer where nothing is
  // known by this name. kUnavailable when there is neither after a brief wait.
  Result<Value> get(const RequestContext& context, const std::string& name, Ask ask,
                    std::optional<Value> old = std::nullopt,
                    RecentWait wait = RecentWait::kForAnswer) {
    const TimePoint now = clock_.now();
    if (std::optional<Known> known = find(name)) {
      if (is_fresh(known->since, now)) return std::move(known->value);
      old = std::move(known->value);
    }
    const bool is_brief = old || wait == RecentWait::kBriefly;
    Result<Value> value = failure(StatusCode::kUnavailable, "the store does not answer");
    if (!is_brief || refresh_.executor == nullptr) {
      if (!is_brief || !is_away(now)) value = ask_here(context, name, ask);
    } else if (!is_away(now)) {
      if (auto answer = ask_beside(name, std::move(ask))) value = *std::move(answer);
    }
    if (!value && old && is_unanswered(value.error())) return *std::move(old);
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

  // Asks again about everything; what was known is still better than no answer. So is what is being
  // asked now.
  void age_all() {
    MutexLock lock(mutex_);
    ++generation_;
    for (auto& [name, answer] : answers_)
      answer.known.since -= lifetime_;
  }

  void forget(const std::string& name) {
    MutexLock lock(mutex_);
    ++generation_;
    erase(name);
  }

 private:
  // The longest that a question beside may take: a store that needs longer has not answered.
  static constexpr Duration kQuestionMax = std::chrono::seconds(30);

  struct Known {
    Value value;
    TimePoint since;
  };
  struct Answer {
    Known known;
    std::list<std::string>::iterator place;
  };
  // Asked beside those who want to know.
  struct Question {
    const TimePoint since;  // From before it is asked: the answer may be as old as that.
    const std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
    const std::uint64_t generation;
    std::optional<Result<Value>> answer = {};  // Guarded by mutex_.
    std::atomic<bool> taken_up = false;

    Question(TimePoint asked, std::uint64_t when) : since(asked), generation(when) {}
    // True for the first: who asks it, or who sees to it that nobody does.
    bool take_up() { return !taken_up.exchange(true); }
  };

  std::uint64_t generation() const {
    MutexLock lock(mutex_);
    return generation_;
  }

  bool is_fresh(TimePoint since, TimePoint now) const { return now - since < lifetime_; }

  bool is_away(TimePoint now) const {
    MutexLock lock(mutex_);
    return unanswered_ && is_fresh(*unanswered_, now);
  }

  Result<Value> ask_here(const RequestContext& context, const std::string& name, const Ask& ask) {
    MR_RETURN_IF_ERROR(AtHandOnly::may_wait());
    const Question question(clock_.now(), generation());
    Result<Value> value = ask(context);
    MutexLock lock(mutex_);
    take(name, question, value);
    return value;
  }

  // Nothing when there is no answer within the patience, or when the store hangs already.
  std::optional<Result<Value>> ask_beside(const std::string& name, Ask ask) {
    const std::shared_ptr<Question> question = question_about(name, std::move(ask));
    if (question == nullptr) return std::nullopt;
    const auto until = question->begun + refresh_.patience;
    MutexLock lock(mutex_);
    while (!question->answer) {
      const bool is_over = std::chrono::steady_clock::now() >= until;
      if (!is_over) {
        if (const Status waits = AtHandOnly::may_wait(); !waits.ok()) return failure(waits);
      }
      if (question_ended_.wait_until(mutex_, until) || question->answer) continue;
      if (!std::exchange(hangs_, true)) say_unanswered(name, "there is no answer yet");
      return std::nullopt;
    }
    return question->answer;
  }

  // The one that is being asked already, or a new one; null when the store hangs.
  std::shared_ptr<Question> question_about(const std::string& name, Ask ask) {
    std::shared_ptr<Question> question;
    {
      MutexLock lock(mutex_);
      if (hangs_) return nullptr;
      std::shared_ptr<Question>& asked = questions_[name];
      if (asked != nullptr && asked->generation == generation_) return asked;
      question = std::make_shared<Question>(clock_.now(), generation_);
      asked = question;
      under_way_.insert(question);
    }
    const Status admitted = refresh_.executor->submit([this, name, question, ask = std::move(ask)] {
      if (!question->take_up()) return;
      // By the machine's clock, as the store has it.
      const RequestContext context =
          RequestContext(system_clock().now() + kQuestionMax, "millrace").with_cancellation(stop_);
      end(name, question, ask(context));
    });
    if (!admitted.ok()) {
      end(name, question, failure(StatusCode::kUnavailable, admitted.message()));
    }
    return question;
  }

  void end(const std::string& name, const std::shared_ptr<Question>& question,
           Result<Value> value) {
    MutexLock lock(mutex_);
    take(name, *question, value);
    question->answer = std::move(value);
    const auto found = questions_.find(name);
    if (found != questions_.end() && found->second == question) questions_.erase(found);
    hangs_ = false;
    under_way_.erase(question);
    // Under the lock: whoever waits may destroy this next.
    question_ended_.notify_all();
  }

  // Notes what the store said, or that it said nothing.
  void take(const std::string& name, const Question& question, const Result<Value>& value)
      MR_REQUIRES(mutex_) {
    // Whoever asked went away: that says nothing about the store.
    if (!value && value.error().code() == StatusCode::kCancelled) return;
    const bool unanswered = !value && is_unanswered(value.error());
    // After the question, which may have taken long.
    unanswered_ = unanswered ? std::optional(clock_.now()) : std::nullopt;
    if (unanswered) {
      if (answers_.contains(name)) say_unanswered(name, value.error().to_string());
    } else if (value) {
      // Something has changed since it was asked: it counts as old.
      const bool is_old = question.generation != generation_;
      keep(name, *value, is_old ? question.since - lifetime_ : question.since);
    } else {
      erase(name);
    }
  }

  static void say_unanswered(const std::string& name, const std::string& why) {
    log_warn("the store cannot be asked; going on with what it said before",
             {{"about", name}, {"error", why}});
  }

  std::optional<Known> find(const std::string& name) const {
    MutexLock lock(mutex_);
    const auto found = answers_.find(name);
    if (found == answers_.end()) return std::nullopt;
    return found->second.known;
  }

  void keep(const std::string& name, const Value& value, TimePoint since) MR_REQUIRES(mutex_) {
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

  void erase(const std::string& name) MR_REQUIRES(mutex_) {
    const auto found = answers_.find(name);
    if (found == answers_.end()) return;
    by_age_.erase(found->second.place);
    answers_.erase(found);
  }

  Clock& clock_;
  const Duration lifetime_;
  const std::size_t entries_max_;
  const RecentRefresh refresh_;
  const std::shared_ptr<Cancellation> stop_ = std::make_shared<Cancellation>();

  mutable Mutex mutex_;
  CondVar question_ended_;
  std::map<std::string, Answer> answers_ MR_GUARDED_BY(mutex_);
  std::list<std::string> by_age_ MR_GUARDED_BY(mutex_);
  // When the store last did not answer, if it has not answered since.
  std::optional<TimePoint> unanswered_ MR_GUARDED_BY(mutex_);
  // The newest question about each name, and all that have not ended.
  std::map<std::string, std::shared_ptr<Question>> questions_ MR_GUARDED_BY(mutex_);
  std::set<std::shared_ptr<Question>> under_way_ MR_GUARDED_BY(mutex_);
  // A question has outlasted the patience, and none has ended since.
  bool hangs_ MR_GUARDED_BY(mutex_) = false;
  // Counts what makes earlier questions count as old.
  std::uint64_t generation_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
