#pragma once

#include <cstddef>
#include <optional>

#include "base/mutex.h"

namespace millrace {

// Lets a service stop: new work is refused, and the closer waits until the work inside has left.
//
//   auto pass = gate_.enter();
//   if (!pass) return failure(StatusCode::kCancelled, "shutting down");
//   start_something([pass = std::move(*pass)] { ... });
//
// All methods are safe from any thread.
class Gate {
 public:
  // Held while inside. Move-only; leaving is its destruction.
  class Pass {
   public:
    Pass(Pass&& other) noexcept;
    Pass& operator=(Pass&& other) noexcept;
    ~Pass();

   private:
    friend class Gate;
    explicit Pass(Gate* gate) : gate_(gate) {}
    Gate* gate_;
  };

  Gate() = default;
  // Closes, so it waits too.
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  // Nothing once the gate is closed.
  [[nodiscard]] std::optional<Pass> enter();
  // Refuses new passes and waits for those inside. May be called more than once; not from inside.
  void close();
  std::size_t inside() const;

 private:
  void leave();

  mutable Mutex mutex_;
  CondVar empty_;
  std::size_t inside_ MR_GUARDED_BY(mutex_) = 0;
  bool closed_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
