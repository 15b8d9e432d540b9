#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/buffer.h"
#include "base/limiter.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

struct BufferPoolOptions {
  // Ceiling over everything handed out. Requests beyond it wait or are refused.
  std::uint64_t bytes_max = 512 * kMiB;
  // How much freed memory is kept for the next buffer. Page faults on fresh memory cost about as
  // much as copying into it, so a reader in steady state should touch no new pages.
  std::uint64_t idle_bytes_max = 64 * kMiB;
};

// Buffers under one ceiling, reused by size class (powers of two from 4 KiB; a request is charged
// its class). Memory returns when the last slice of a buffer goes, also after the pool is gone.
// Buffers start at a page boundary.
//
// Invariants:
//  1. Handed out plus idle is at most bytes_max: idle memory makes room for new buffers.
//  2. Idle is at most idle_bytes_max.
//
// All methods are safe from any thread.
class BufferPool {
 public:
  explicit BufferPool(BufferPoolOptions options);
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer of `size` bytes now, or kResourceExhausted when the ceiling does not allow it.
  // A size whose class is above the ceiling is kInvalidArgument.
  Result<Buffer> try_allocate(std::size_t size);
  // Waits, first come first served, for memory until the context ends. Must not be called on an
  // event loop.
  Result<Buffer> allocate(const RequestContext& context, std::size_t size);

  std::uint64_t bytes_in_use() const;
  std::uint64_t bytes_idle() const;

 private:
  struct State;
  struct Holding;
  std::optional<Buffer> take_parked(std::size_t size);
  Result<Buffer> take(std::size_t size, Limiter::Reservation reservation);
  std::shared_ptr<State> state_;
};

}  // namespace millrace
