#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "objectstore/object_store.h"

namespace millrace {

// Asks the store now and then whether it is there, so that operators learn of it before readers do.
// What is cached is served without it.
//
// Lifecycle: asks from construction to destruction, on a thread of its own. Store and clock outlive
// it. Safe from any thread.
class StoreWatch {
 public:
  struct State {
    bool asked = false;    // The first answer, or its absence, is known.
    bool answers = false;  // Also with a refusal.
    WallTime since{};      // Of `answers`.
    std::string error;     // What the store said last, if that was no success.
  };

  StoreWatch(ObjectStore& store, Clock& clock);
  ~StoreWatch();
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;

  State state() const;

 private:
  void run();
  // Whether the store answers.
  bool ask();

  ObjectStore& store_;
  Clock& clock_;
  const std::shared_ptr<Cancellation> stop_ = std::make_shared<Cancellation>();
  mutable Mutex mutex_;
  State state_ MR_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace millrace
