#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "objectstore/store_operation.h"

namespace millrace {

// What goes wrong with one call to a FaultyObjectStore.
struct Fault {
  enum class Kind : std::uint8_t {
    kFailBefore,  // Nothing is done.
    kFailAfter,   // It is done, and the answer is lost.
    kThrottle,    // Nothing is done; kThrottled, with `retry_after` if set.
    kDelay,       // Done `delay` later.
    // One bit of a read's bytes is flipped, as if on the way past all checks of the back end. Other
    // operations carry no bytes back and are left alone.
    kCorrupt,
    kHang,  // No answer before the context's deadline or cancellation.
  };
  Kind kind = Kind::kFailBefore;
  StatusCode code = StatusCode::kUnavailable;
  Duration delay{0};
  std::optional<Duration> retry_after = {};
};

struct FaultableCall {
  StoreOperation operation = StoreOperation::kGetRange;
  // As RecordedRequest has it.
  std::string key = {};
  std::uint32_t attempt = 0;
  // Which call of the store this is, from 1.
  std::uint64_t number = 0;
};

// Decides about each call; nothing means that it goes well. Must be safe from any thread.
using FaultPlan = std::function<std::optional<Fault>(const FaultableCall&)>;

FaultPlan no_faults();
// Only the call with this number, from 1: for the loop that fails the first, the second, the third
// call until the operation succeeds.
FaultPlan fault_nth_call(std::uint64_t number, Fault fault);

// One of several faults with a probability each; they sum to at most 1.
struct FaultChance {
  double probability = 0;
  Fault fault = {};
};
// The same calls in the same order give the same faults. A kDelay lasts a random part of its delay.
FaultPlan random_faults(std::uint64_t seed, std::vector<FaultChance> chances);

}  // namespace millrace
