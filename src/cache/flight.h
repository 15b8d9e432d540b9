#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/fetch_account.h"
#include "base/status.h"
#include "base/task.h"
#include "cache/fetch_queue.h"
#include "cache/unit.h"
#include "metrics/metric_table.h"

namespace millrace {

// Units of one object on their way from the store to the disk. It stays in its object's list until
// they are on the disk, so that a reader who comes while they are being written gets them from
// memory. Fields change under the object's lock.
struct Flight {
  using Waiter = std::move_only_function<void(Result<Slice>)>;

  explicit Flight(UnitRange flown) : units(flown) {}

  const UnitRange units;
  bool is_ahead = false;   // It was a guess when it began.
  bool is_passed = false;  // A reader has read to its end since.
  Urgency urgency = Urgency::kSpeculative;
  std::uint32_t attempts = 0;
  // Who made it fly; null when nobody counts. Set before it is sent.
  std::shared_ptr<FetchAccount> account = {};
  FetchQueue::Ticket ticket = {};
  // Answered once, when the data is there or cannot be had.
  std::vector<Waiter> waiters = {};
  // Set when the data has come and was checked, or cannot be had.
  std::optional<Result<Slice>> outcome = {};
  // Set when it ends and nothing was written.
  std::optional<CacheSkip> skipped = {};
  std::vector<Task> waiters_for_end = {};
};

}  // namespace millrace
