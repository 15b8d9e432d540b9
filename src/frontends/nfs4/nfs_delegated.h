#pragma once

#include <atomic>
#include <compare>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "vfs/node_number.h"

namespace millrace {

struct NfsDelegationPlace {
  std::uint32_t export_id = 0;
  TreeNumber tree;

  auto operator<=>(const NfsDelegationPlace&) const = default;
};

// Where a client was given delegations. Of single ones nothing is remembered: what is given back is
// found by those who ask for all of them.
//
// All methods are safe from any thread.
class NfsDelegated {
 public:
  void add(const NfsDelegationPlace& place) MR_EXCLUDES(mutex_) {
    // Opens come by the thousand, and all in one place.
    const std::uint64_t key = (std::uint64_t{place.export_id} << 32) | place.tree.value();
    if (last_.exchange(key, std::memory_order_relaxed) == key) return;
    const MutexLock lock(mutex_);
    places_.insert(place);
  }
  std::vector<NfsDelegationPlace> places() const MR_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return {places_.begin(), places_.end()};
  }
  using IsGone = std::function<bool(const NfsDelegationPlace&)>;
  // Whether there are any in what is gone. Those count as given back from then on.
  bool take(const IsGone& is_gone) MR_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    last_ = 0;
    return std::erase_if(places_, is_gone) > 0;
  }

 private:
  std::atomic<std::uint64_t> last_ = 0;
  mutable Mutex mutex_;
  std::set<NfsDelegationPlace> places_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
