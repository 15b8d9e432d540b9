#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace millrace {

// The requests that are being answered, so that they can be called off. Safe from any thread.
class FuseCalls {
 public:
  // `thread` is who waits for the answer, as the kernel names it.
  void add(std::uint64_t unique, std::uint32_t thread, std::shared_ptr<Cancellation> cancellation);
  void remove(std::uint64_t unique);

  // Notes that a signal came for who waits, and says who that is; nothing when there is no such
  // request, or not yet.
  std::optional<std::uint32_t> note_signal(std::uint64_t unique);
  struct Signalled {
    std::uint64_t unique;
    std::uint32_t thread;
  };
  std::vector<Signalled> signalled();

  void interrupt(std::uint64_t unique);
  void interrupt_all();
  std::size_t size();

 private:
  static constexpr std::size_t kShards = 16;
  struct Call {
    std::uint32_t thread = 0;
    std::shared_ptr<Cancellation> cancellation;
    bool had_signal = false;
  };
  struct Shard {
    Mutex mutex;
    std::unordered_map<std::uint64_t, Call> calls MR_GUARDED_BY(mutex);
  };
  // Uniques are even.
  Shard& shard(std::uint64_t unique) { return shards_[(unique / 2) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
