#include "cache/fresh_bytes.h"

#include <utility>
#include <vector>

#include "cache/cached_object.h"

namespace millrace {
namespace {

// A reader who does not come within this time does not come.
constexpr Duration kFreshFor = std::chrono::seconds(10);

}  // namespace

void FreshBytes::add(const std::shared_ptr<CachedObject>& object, UnitRange units,
                     const Slice& data) {
  const TimePoint now = clock_.now();
  drop_those_before(now - kFreshFor);
  if (bytes_.fetch_add(data.size(), std::memory_order_relaxed) + data.size() > bytes_max_) {
    bytes_.fetch_sub(data.size(), std::memory_order_relaxed);
    return;
  }
  object->add_fresh({.units = units, .data = data, .room = Room(*this, data.size())});
  MutexLock lock(mutex_);
  pieces_.push_back({object, units, now});
}

void FreshBytes::drop_all() { drop_those_before(TimePoint::max()); }

void FreshBytes::drop_those_before(TimePoint time) {
  std::vector<Piece> old;
  {
    MutexLock lock(mutex_);
    while (!pieces_.empty() && pieces_.front().since < time) {
      old.push_back(std::move(pieces_.front()));
      pieces_.pop_front();
    }
  }
  // An object may go with its last holder here: not under the lock.
  for (const Piece& piece : old) {
    if (const std::shared_ptr<CachedObject> object = piece.object.lock()) {
      object->drop_fresh(piece.units);
    }
  }
}

}  // namespace millrace
