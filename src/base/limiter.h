#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

// A budget of bytes or of things (requests, handles, connections), given out as reservations that
// return by themselves.
//
// Invariants:
//  1. The sum of live reservations never exceeds the capacity.
//  2. First come, first served: nobody overtakes a waiter, so a large request is not starved.
//     Nothing (an amount of 0) is always granted at once.
//
// All methods are safe from any thread. Reservations may outlive the limiter.
class Limiter {
  struct State;

 public:
  enum class Unit { kBytes, kCount };

  // Move-only; returns what it holds when destroyed.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept;
    Reservation& operator=(Reservation&& other) noexcept;
    ~Reservation();

    std::uint64_t amount() const { return amount_; }
    // Returns part of it early: keeps `amount`, which is at most amount().
    void shrink_to(std::uint64_t amount);

   private:
    friend class Limiter;
    Reservation(std::shared_ptr<State> state, std::uint64_t amount);
    std::shared_ptr<State> state_;
    std::uint64_t amount_ = 0;
  };

  // `name` appears in errors: "fetch_bytes". Deadlines are times of `clock`, which outlives the
  // limiter.
  Limiter(std::string name, Unit unit, std::uint64_t capacity, Clock& clock = system_clock());
  ~Limiter();
  Limiter(const Limiter&) = delete;
  Limiter& operator=(const Limiter&) = delete;

  // Now or not at all: kResourceExhausted names the limit and what is free. An amount above the
  // capacity is kInvalidArgument: it could never be granted.
  Result<Reservation> try_reserve(std::uint64_t amount);
  // Waits its turn until the context's deadline or cancellation. Blocks: not for event loops.
  Result<Reservation> reserve(const RequestContext& context, std::uint64_t amount);

  std::uint64_t in_use() const;
  std::uint64_t capacity() const;

 private:
  std::shared_ptr<State> state_;
};

}  // namespace millrace
