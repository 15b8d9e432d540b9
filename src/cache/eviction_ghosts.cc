#include "cache/eviction_ghosts.h"

#include <algorithm>
#include <span>
#include <utility>

namespace millrace {

void GhostQueue::add(BlockId block, std::size_t capacity) {
  make_room(capacity);
  if (++last_number_ == 0) ++last_number_;
  place({.fingerprint = fingerprint(block), .number = last_number_});
}

bool GhostQueue::take(BlockId block, std::size_t capacity) {
  if (ghosts_.empty()) return false;
  const std::uint32_t wanted = fingerprint(block);
  for (Ghost& ghost : std::span(bucket(wanted), kBucketGhosts)) {
    if (ghost.number == 0 || ghost.fingerprint != wanted) continue;
    const bool counts = age(ghost) < capacity;
    ghost = {};
    return counts;
  }
  return false;
}

// Into a free place, its own old one, or the oldest one's.
void GhostQueue::place(const Ghost& ghost) {
  const std::span all(bucket(ghost.fingerprint), kBucketGhosts);
  *std::ranges::max_element(all, {}, [&](const Ghost& there) {
    if (there.number != 0 && there.fingerprint == ghost.fingerprint) return std::uint64_t{1} << 33;
    return there.number == 0 ? std::uint64_t{1} << 32 : std::uint64_t{age(there)};
  }) = ghost;
}

// A third of the places stays free, lest a bucket overflow while its ghosts still count.
void GhostQueue::make_room(std::size_t capacity) {
  constexpr std::size_t kFirst = 64;
  std::size_t size = std::max(ghosts_.size(), kFirst);
  while (capacity + capacity / 2 > size)
    size *= 2;
  if (size == ghosts_.size()) return;
  const std::vector<Ghost> old = std::exchange(ghosts_, std::vector<Ghost>(size));
  for (const Ghost& ghost : old) {
    if (ghost.number != 0) place(ghost);
  }
}

}  // namespace millrace
