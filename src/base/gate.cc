#include "base/gate.h"

#include <cassert>
#include <utility>

namespace millrace {

Gate::Pass::Pass(Pass&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}

Gate::Pass& Gate::Pass::operator=(Pass&& other) noexcept {
  if (this != &other) {
    if (gate_ != nullptr) gate_->leave();
    gate_ = std::exchange(other.gate_, nullptr);
  }
  return *this;
}

Gate::Pass::~Pass() {
  if (gate_ != nullptr) gate_->leave();
}

Gate::~Gate() { close(); }

std::optional<Gate::Pass> Gate::enter() {
  MutexLock lock(mutex_);
  if (closed_) return std::nullopt;
  ++inside_;
  return Pass(this);
}

void Gate::close() {
  MutexLock lock(mutex_);
  closed_ = true;
  while (inside_ > 0)
    empty_.wait(mutex_);
}

std::size_t Gate::inside() const {
  MutexLock lock(mutex_);
  return inside_;
}

void Gate::leave() {
  MutexLock lock(mutex_);
  assert(inside_ > 0);
  --inside_;
  // Under the lock: the closer may destroy the gate as soon as it can take it.
  if (inside_ == 0) empty_.notify_all();
}

}  // namespace millrace
