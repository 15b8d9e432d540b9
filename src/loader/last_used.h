#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "base/mutex.h"

namespace millrace {

// Keeps the few things that were used last, by their numbers. What was let go lives on with those
// who still use it. Safe from any thread.
template <class Value>
class LastUsed {
 public:
  explicit LastUsed(std::size_t count_max) : count_max_(count_max) {}

  // Null when it is not kept.
  std::shared_ptr<const Value> find(std::uint64_t number) MR_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto at = kept_.find(number);
    if (at == kept_.end()) return nullptr;
    at->second.used = ++uses_;
    return at->second.value;
  }
  std::shared_ptr<const Value> add(std::uint64_t number, Value value) MR_EXCLUDES(mutex_) {
    auto added = std::make_shared<const Value>(std::move(value));
    const MutexLock lock(mutex_);
    kept_[number] = {.value = added, .used = ++uses_};
    if (kept_.size() <= count_max_) return added;
    auto oldest = kept_.begin();
    for (auto at = kept_.begin(); at != kept_.end(); ++at) {
      if (at->second.used < oldest->second.used) oldest = at;
    }
    kept_.erase(oldest);
    return added;
  }

 private:
  struct Kept {
    std::shared_ptr<const Value> value = {};
    std::uint64_t used = 0;
  };

  const std::size_t count_max_;
  Mutex mutex_;
  std::map<std::uint64_t, Kept> kept_ MR_GUARDED_BY(mutex_);
  std::uint64_t uses_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
