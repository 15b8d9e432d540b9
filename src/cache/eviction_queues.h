#pragma once

#include <cstddef>
#include <cstdint>

#include "cache/eviction_ghosts.h"
#include "cache/eviction_table.h"

namespace millrace {

// The order of blocks that no plan mentions: S3-FIFO. A new block waits in the small queue, a tenth
// of the bytes. Who is used again meanwhile moves to the main queue, and who is not goes and leaves
// a ghost. A block that returns while its ghost is remembered enters main at once. So what is read
// once passes through a tenth of the cache and pushes out nothing else.
//
// Three things are made for training jobs, which read a dataset larger than the cache epoch after
// epoch. While the cache fills, main takes what comes first, and so the same part of each epoch is
// found there. Few ghosts are kept, for when an epoch is shuffled, a quick return is chance. And
// since main hardly changes then, a patrol looks for blocks that nobody has used for longer than
// any that are still used: a job that ended leaves its part to the next one.
//
// Uses that follow each other closely count as one: a reader comes to each block of a file many
// times on its way through, and is still one reader.
//
// Invariants:
//  1. An entry is in the list of the place it names, kSmall or kMain, and in no other.
//  2. A queue's bytes and entries are the sums over its list.
//  3. frequency is at most kFrequencyMax.
//  4. patrolled_ is in main, or kNoEntry.
class UnplannedOrder {
 public:
  explicit UnplannedOrder(BlockTable& table) : table_(table) {}

  // Takes a new block: into main when it left lately, else into small. `filling`: nothing had to go
  // for it; then main also takes what small has no room for.
  void admit(EntrySlot slot, std::uint64_t all_bytes, bool filling);
  // Takes a block that was used just now, as the youngest of that queue.
  void put(EntrySlot slot, BlockPlace place);
  void remove(EntrySlot slot);
  // Removes a block that is being evicted, and remembers it if it was on trial. A place in main
  // that comes free so goes to the oldest of a small queue that has more than its share.
  void evict(EntrySlot slot, std::uint64_t all_bytes);
  void resize(EntrySlot slot, std::uint32_t bytes);
  // Counts a use.
  void touch(EntrySlot slot);

  // Reading went on elsewhere: the clock of age_bytes().
  void pass_time(std::uint64_t bytes) { used_bytes_ += bytes; }
  // How much was read, by anybody, since the block was used.
  std::uint64_t age_bytes(EntrySlot slot) const;

  // Looks at one more block of main, round and round. Returns it if it is stale, else kNoEntry.
  EntrySlot patrol(std::uint64_t all_bytes);
  // The block whose turn it is, or kNoEntry. The small queue may have its share of `all_bytes`.
  EntrySlot candidate(std::uint64_t all_bytes) const;
  // Whether the small queue has more than that.
  bool small_is_over(std::uint64_t all_bytes) const;
  // Whether it has not earned to stay.
  bool is_cold(EntrySlot slot) const;
  // Gives the candidate, which is not cold, another round.
  void pass_over(EntrySlot slot);

  std::uint64_t bytes() const { return small_.bytes + main_.bytes; }
  std::uint64_t used_bytes() const { return used_bytes_; }
  std::size_t memory_bytes() const { return ghosts_.memory_bytes(); }

 private:
  struct Queue {
    EntrySlot youngest = kNoEntry;
    EntrySlot oldest = kNoEntry;
    std::uint64_t bytes = 0;
    std::size_t entries = 0;
  };

  Queue& queue_of(const BlockEntry& entry) {
    return entry.place == BlockPlace::kSmall ? small_ : main_;
  }
  void push(EntrySlot slot, BlockPlace place);
  std::uint32_t now() const;
  std::size_t ghosts_max() const;
  void learn_reuse(std::uint64_t age_bytes);

  BlockTable& table_;
  Queue small_;
  Queue main_;
  EntrySlot patrolled_ = kNoEntry;  // In main: where patrol() goes on. kNoEntry: at the oldest.
  std::uint64_t reuse_bytes_ = 0;   // The age that few blocks of main reach before they are used.
  GhostQueue ghosts_;
  std::uint64_t used_bytes_ = 0;  // The clock: the bytes of blocks, at each use that counted.
};

}  // namespace millrace
