#pragma once

#include <atomic>
#include <cstdint>

#include "frontends/nfs4/nfs_types.h"

namespace millrace {

// Numbers clients: the server's life in the upper half, a count in the lower. So a number of an
// earlier life is known as stale. Safe from any thread.
class NfsClientIds {
 public:
  explicit NfsClientIds(std::uint32_t life) : life_(life) {}

  std::uint32_t life() const { return life_; }
  NfsClientId next() { return of_count(count_.fetch_add(1) + 1); }
  // Whether the number was given out in this life.
  bool knows(NfsClientId id) const {
    return id.value() >> 32 == life_ && (id.value() & UINT32_MAX) <= count_.load();
  }
  NfsClientId of_count(std::uint32_t count) const {
    return NfsClientId(std::uint64_t{life_} << 32 | count);
  }

 private:
  const std::uint32_t life_;
  std::atomic<std::uint32_t> count_ = 0;
};

}  // namespace millrace
