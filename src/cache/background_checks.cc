#include "cache/background_checks.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace millrace {
namespace {

constexpr std::uint32_t kCheckedPieceUnits = 4 * kBlockUnits;

}  // namespace

void BackgroundChecks::start(const std::shared_ptr<CachedObject>& object) {
  {
    MutexLock lock(mutex_);
    if (!under_way_.insert(object->version().digest()).second) return;
  }
  check_from(object, 0);
}

void BackgroundChecks::check_from(const std::shared_ptr<CachedObject>& object, std::uint32_t unit) {
  std::optional<Gate::Pass> pass = gate_.enter();
  if (!pass || unit >= object->units()) {
    end(*object);
    return;
  }
  disk_.resume([this, object, unit, inside = std::move(*pass)] {
    const std::uint32_t count = std::min(kCheckedPieceUnits, object->units() - unit);
    verifier_.check(*object, {unit, count}, CacheDamage::kRead, false);
    check_from(object, unit + count);
  });
}

void BackgroundChecks::end(const CachedObject& object) {
  MutexLock lock(mutex_);
  under_way_.erase(object.version().digest());
}

}  // namespace millrace
