#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "platform/file.h"
#include "platform/fork_count.h"

namespace millrace {

// Memory of this process that another one can be given, as a file without a name: it goes when the
// last of both lets go, however they end. Shared mappings, so what one writes the other sees.
class BatchMemory {
 public:
  // Sealed against a change of its size, so that nobody who has it can make us fail.
  static Result<std::unique_ptr<BatchMemory>> make(std::size_t bytes);
  // What another process gave. kInvalidArgument when it could be cut later, or is not that large.
  static Result<std::unique_ptr<BatchMemory>> map(File file, std::size_t bytes);
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  std::byte* data() { return data_; }
  std::size_t size() const { return size_; }
  ByteView bytes() const { return {data_, size_}; }
  int descriptor() const { return file_.descriptor(); }
  // Of all memory that this process made or mapped: no other has it.
  std::uint64_t number() const { return number_; }
  // Takes all of it from the system now, and not at the first touch of each page.
  void populate();
  // It is not used again, since somebody may hold it for ever.
  void retire() { retired_ = true; }
  // Somebody has it from now on.
  void hand_out() { forks_ = fork_count(); }
  // Whether it may be used again once it returns: a child that was forked meanwhile has it too.
  bool is_reusable() const { return !retired_ && forks_ == fork_count(); }

 private:
  BatchMemory(File file, std::byte* data, std::size_t size);

  const std::uint64_t number_;
  std::atomic<bool> retired_ = false;
  std::atomic<std::uint64_t> forks_ = fork_count();  // When it was handed out last.
  File file_;
  std::byte* data_;
  std::size_t size_;
};

// Memory for batches, used again: fresh pages cost as much as filling them.
//
// 1. What is handed out returns when its last reference goes, also after the pool is gone.
// 2. At most kIdleMax pieces rest; a piece is taken for a batch of at least half its size.
//
// Safe from any thread.
class BatchMemoryPool {
 public:
  BatchMemoryPool() : state_(std::make_shared<State>()) {}

  // At least `bytes`. kResourceExhausted when the system has no memory.
  Result<std::shared_ptr<BatchMemory>> take(std::size_t bytes);
  // Sees to it that memory for a batch of so many samples, of so many bytes in all, rests here with
  // its pages: for who has nothing else to do before it is taken.
  void prepare(std::size_t samples, std::size_t bytes);

 private:
  static constexpr std::size_t kIdleMax = 8;
  using Idle = std::vector<std::unique_ptr<BatchMemory>>;

  struct State {
    Mutex mutex;
    Idle idle MR_GUARDED_BY(mutex);
  };
  // The end when none rests that fits.
  static Idle::iterator find_idle(State& state, std::size_t wanted) MR_REQUIRES(state.mutex);
  static void put_back(const std::weak_ptr<State>& state, std::unique_ptr<BatchMemory> memory);

  std::shared_ptr<State> state_;
};

}  // namespace millrace
