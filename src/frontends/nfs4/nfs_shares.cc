#include "frontends/nfs4/nfs_shares.h"

namespace millrace {

void NfsShares::Counts::add(NfsShare share) {
  for (std::size_t bit = 0; bit < 2; ++bit) {
    access[bit] += share.access >> bit & 1;
    deny[bit] += share.deny >> bit & 1;
  }
}

void NfsShares::Counts::remove(NfsShare share) {
  for (std::size_t bit = 0; bit < 2; ++bit) {
    access[bit] -= share.access >> bit & 1;
    deny[bit] -= share.deny >> bit & 1;
  }
}

bool NfsShares::Counts::conflicts(NfsShare share) const {
  for (std::size_t bit = 0; bit < 2; ++bit) {
    if ((share.access >> bit & 1) != 0 && deny[bit] > 0) return true;
    if ((share.deny >> bit & 1) != 0 && access[bit] > 0) return true;
  }
  return false;
}

NfsShares::Shard& NfsShares::shard_of(NodeNumber node) { return shards_[node.value() % kShards]; }

const NfsShares::Shard& NfsShares::shard_of(NodeNumber node) const {
  return shards_[node.value() % kShards];
}

NfsStatus NfsShares::change(NodeNumber node, NfsShare from, NfsShare to) {
  if (from.none() && opens_.fetch_add(1, std::memory_order_relaxed) >= opens_max_) {
    opens_.fetch_sub(1, std::memory_order_relaxed);
    return NfsStatus::kDelay;
  }
  Shard& shard = shard_of(node);
  MutexLock lock(shard.mutex);
  Counts& counts = shard.nodes[node];
  counts.remove(from);
  const bool conflict = counts.conflicts(to);
  counts.add(conflict ? from : to);
  const NfsShare now = conflict ? from : to;
  if (from.none() && !now.none()) ++counts.opens;
  if (!from.none() && now.none()) --counts.opens;
  if (now.none()) opens_.fetch_sub(1, std::memory_order_relaxed);
  if (counts.opens == 0) shard.nodes.erase(node);
  return conflict ? NfsStatus::kShareDenied : NfsStatus::kOk;
}

bool NfsShares::denies(NodeNumber node, std::uint32_t access) const {
  const Shard& shard = shard_of(node);
  MutexLock lock(shard.mutex);
  const auto found = shard.nodes.find(node);
  return found != shard.nodes.end() && found->second.conflicts({.access = access, .deny = 0});
}

}  // namespace millrace
