#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "frontends/nfs4/nfs_protocol.h"
#include "frontends/nfs4/nfs_state_numbers.h"
#include "vfs/node.h"

namespace millrace {

// What an open wants for itself, and what it denies others: bits of kShareAccess and kShareDeny.
struct NfsShare {
  std::uint32_t access = 0;
  std::uint32_t deny = 0;

  bool none() const { return access == 0; }
  bool operator==(const NfsShare&) const = default;
};

// The share reservations of all opens of all clients. Safe from any thread.
//
// Invariants:
//  1. A node's counts are those of its opens, and a node without opens is not remembered.
//  2. No open has what another denies.
class NfsShares {
 public:
  explicit NfsShares(std::size_t opens_max) : opens_max_(opens_max) {}

  // Changes an open of the node from one share to another; none() stands for one that is not there
  // before, or not after. kShareDenied when others are in the way, kDelay when there are too many
  // opens; then nothing has changed. What takes less than before always succeeds.
  NfsStatus change(NodeNumber node, NfsShare from, NfsShare to);
  // Whether an open denies this to those who have none.
  bool denies(NodeNumber node, std::uint32_t access) const;
  std::size_t opens() const { return opens_.load(std::memory_order_relaxed); }

 private:
  // By bit: how many opens have it.
  struct Counts {
    std::uint32_t opens = 0;
    std::array<std::uint32_t, 2> access = {};
    std::array<std::uint32_t, 2> deny = {};

    void add(NfsShare share);
    void remove(NfsShare share);
    bool conflicts(NfsShare share) const;
  };
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<NodeNumber, Counts> nodes MR_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;

  Shard& shard_of(NodeNumber node);
  const Shard& shard_of(NodeNumber node) const;

  const std::size_t opens_max_;
  std::atomic<std::size_t> opens_ = 0;
  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
