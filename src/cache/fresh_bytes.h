#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "cache/unit.h"

namespace millrace {

class CachedObject;

// Bytes that were fetched ahead and are on the disk by now, and also still in memory for the reader
// who is about to come: he need not wait for the disk, and the page cache is spared. They stay
// until he has passed them, until memory is short, or for a while.
//
// The pieces are in their objects; this is what bounds them all together. Invariant: the pieces
// that exist are within `bytes_max`. All methods are safe from any thread.
class FreshBytes {
 public:
  FreshBytes(std::uint64_t bytes_max, Clock& clock) : bytes_max_(bytes_max), clock_(clock) {}

  // Room that a piece takes, and returns with it. Must not outlive its FreshBytes.
  class Room {
   public:
    Room(FreshBytes& of, std::uint64_t bytes) : of_(&of), bytes_(bytes) {}
    Room(Room&& other) noexcept : of_(std::exchange(other.of_, nullptr)), bytes_(other.bytes_) {}
    Room& operator=(Room&& other) noexcept {
      std::swap(of_, other.of_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Room() {
      if (of_ != nullptr) of_->bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
    }

   private:
    FreshBytes* of_;
    std::uint64_t bytes_;
  };

  // Keeps the bytes of whole units, if there is room.
  void add(const std::shared_ptr<CachedObject>& object, UnitRange units, const Slice& data);
  // Memory is short.
  void drop_all();

 private:
  struct Piece {
    std::weak_ptr<CachedObject> object;
    UnitRange units;
    TimePoint since;
  };
  void drop_those_before(TimePoint time);

  const std::uint64_t bytes_max_;
  Clock& clock_;
  std::atomic<std::uint64_t> bytes_ = 0;
  Mutex mutex_;
  // Oldest first; some were passed already.
  std::deque<Piece> pieces_ MR_GUARDED_BY(mutex_);
};

// A part of an object that is in memory.
struct FreshPiece {
  UnitRange units;
  Slice data;
  FreshBytes::Room room;
};

}  // namespace millrace
