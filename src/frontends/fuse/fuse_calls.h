#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"

namespace millrace {

// The requests that are being answered, so that the kernel can call them off. Safe from any thread.
class FuseCalls {
 public:
  void add(std::uint64_t unique, std::shared_ptr<Cancellation> cancellation);
  void remove(std::uint64_t unique);
  // False when there is no such request, or not yet.
  bool interrupt(std::uint64_t unique);
  void interrupt_all();
  bool empty();

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    Mutex mutex;
    std::unordered_map<std::uint64_t, std::shared_ptr<Cancellation>> calls MR_GUARDED_BY(mutex);
  };
  // Uniques are even.
  Shard& shard(std::uint64_t unique) { return shards_[(unique / 2) % kShards]; }

  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
