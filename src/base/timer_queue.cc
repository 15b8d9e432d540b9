#include "base/timer_queue.h"

#include <algorithm>

#include "base/executor.h"

namespace millrace {

class TimerQueue::ArmedTimer final : public Clock::Timer {
 public:
  ArmedTimer(std::shared_ptr<TimerQueue> queue, Key key) : queue_(std::move(queue)), key_(key) {}
  ~ArmedTimer() override { queue_->disarm(key_); }

 private:
  const std::shared_ptr<TimerQueue> queue_;
  const Key key_;
};

std::unique_ptr<Clock::Timer> TimerQueue::arm(TimePoint when, Executor& executor, Task task) {
  MutexLock lock(mutex_);
  const Key key{when, next_id_++};
  const auto [entry, inserted] = armed_.emplace(key, Entry{key.second, &executor, std::move(task)});
  if (entry == armed_.begin()) first_changed_.notify_all();
  lock.unlock();
  return std::make_unique<ArmedTimer>(shared_from_this(), key);
}

bool TimerQueue::fire_one(TimePoint now) {
  MutexLock lock(mutex_);
  if (armed_.empty() || armed_.begin()->first.first > now) return false;
  Entry entry = take_first();
  lock.unlock();
  hand_over(std::move(entry));
  return true;
}

void TimerQueue::wait_and_fire() {
  MutexLock lock(mutex_);
  while (true) {
    if (armed_.empty()) {
      first_changed_.wait(mutex_);
      continue;
    }
    const TimePoint when = armed_.begin()->first.first;
    if (when <= std::chrono::steady_clock::now()) break;
    first_changed_.wait_until(mutex_, when);
  }
  Entry entry = take_first();
  lock.unlock();
  hand_over(std::move(entry));
}

TimerQueue::Entry TimerQueue::take_first() {
  Entry entry = std::move(armed_.extract(armed_.begin()).mapped());
  handovers_.push_back({entry.id, std::this_thread::get_id(), entry.executor});
  return entry;
}

void TimerQueue::hand_over(Entry entry) {
  entry.executor->resume(std::move(entry.task));
  MutexLock lock(mutex_);
  std::erase_if(handovers_, [&](const Handover& h) { return h.id == entry.id; });
  handover_ended_.notify_all();
}

bool TimerQueue::must_wait_for(std::uint64_t id) const {
  return std::ranges::any_of(handovers_, [id](const Handover& h) {
    return h.id == id && h.thread != std::this_thread::get_id() && h.executor != &inline_executor();
  });
}

void TimerQueue::disarm(const Key& key) {
  MutexLock lock(mutex_);
  const auto node = armed_.extract(key);
  if (node.empty()) {
    while (must_wait_for(key.second))
      handover_ended_.wait(mutex_);
  }
  lock.unlock();
  // A task that was still armed is destroyed with `node`, after the lock.
}

std::optional<TimePoint> TimerQueue::next() const {
  MutexLock lock(mutex_);
  if (armed_.empty()) return std::nullopt;
  return armed_.begin()->first.first;
}

std::size_t TimerQueue::size() const {
  MutexLock lock(mutex_);
  return armed_.size();
}

}  // namespace millrace
