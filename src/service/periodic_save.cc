#include "service/periodic_save.h"

#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace millrace {

void PeriodicSave::stop() {
  std::unique_ptr<Clock::Timer> timer;
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    timer = std::move(timer_);
  }
  timer.reset();
  saves_.close();
}

void PeriodicSave::schedule() {
  // A task that waits in its executor's queue keeps this alive.
  std::optional<Gate::Pass> pass = saves_.enter();
  MutexLock lock(mutex_);
  if (stopping_ || !pass) return;
  timer_ = parts_.clock.schedule(parts_.clock.now() + parts_.period, parts_.work,
                                 [this, inside = std::move(*pass)] { save_now(); });
}

void PeriodicSave::save_now() {
  if (Status status = parts_.save(); !status.ok()) {
    log_error(fmt::format("cannot save {}; trying again", parts_.what),
              {{"error", status.to_string()}});
  }
  schedule();
}

}  // namespace millrace
