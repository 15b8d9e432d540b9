#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "cache/eviction.h"
#include "cache/object_version.h"
#include "cache/slot_index.h"

namespace millrace {

// The books of one cache directory: how much it holds, how much it may hold, and what goes next.
// It frees nothing itself.
//
// Invariants:
//  1. Used plus reserved is at most the limit when a reservation is given; the limit may sink below
//     that later.
//  2. Every block that holds bytes on the disk is known here by its object's digest, and counted
//     once. Objects get dense numbers for the eviction; a number is free again with the object's
//     last block.
//
// All methods are safe from any thread.
class CacheSpace {
 public:
  explicit CacheSpace(std::uint64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  struct Block {
    ObjectDigest digest;
    std::uint32_t block = 0;
    std::uint32_t bytes = 0;
  };

  // Room for bytes that are about to be written; false when something must go first.
  bool try_reserve(std::uint64_t bytes);
  void unreserve(std::uint64_t bytes);
  // Reserved bytes of a block were written.
  void fill(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes);
  // Bytes that were found on the disk; what is known of the block already counts once.
  void found(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes);
  // A block was read.
  void touch(const ObjectDigest& digest, std::uint32_t block);

  // The block to give up next. It is out of the order, and counts until the caller has freed it and
  // calls remove(), or calls keep() because it could not. Nothing when all is held.
  std::optional<Block> pop_victim();
  void keep(const Block& block);
  // Its bytes are free. Nothing happens when the block is not known.
  void remove(const ObjectDigest& digest, std::uint32_t block);
  // Some of its bytes count no more.
  void shrink(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes);
  // All blocks of an object are free, or will be: a file that was unlinked while somebody has it
  // open takes `unlinked_bytes` until he lets go. In one step, so that nothing counts twice.
  void remove_object(const ObjectDigest& digest, std::uint64_t unlinked_bytes = 0);
  // He may let go before whoever unlinks has come to the other call.
  void remove_unlinked(std::uint64_t bytes);

  // Leased blocks are never victims. Holds are counted; a block that is not there yet is held when
  // it comes. A promise is a hold that others who want the room have to reckon with.
  void hold(const ObjectDigest& digest, std::uint32_t block);
  void release(const ObjectDigest& digest, std::uint32_t block);
  void promise(const ObjectDigest& digest, std::uint32_t block, std::uint32_t bytes);
  void release_promise(const ObjectDigest& digest, std::uint32_t block);
  struct Promised {
    std::uint32_t times = 0;
    std::uint32_t bytes = 0;
  };
  Promised promised(const ObjectDigest& digest, std::uint32_t block) const;
  // Whether any of the first `blocks` of an object is leased.
  bool is_held(const ObjectDigest& digest, std::uint32_t blocks) const;

  // Plans, as Eviction has them, by digest. The objects of a plan need not be here.
  struct PlannedUse {
    ObjectDigest digest;
    std::uint32_t block = 0;
    std::uint32_t bytes = 0;
  };
  Result<PlanId> announce(std::span<const PlannedUse> uses);
  Status extend(PlanId plan, std::span<const PlannedUse> uses);
  Status advance(PlanId plan, std::uint64_t position);
  void withdraw(PlanId plan);

  // The objects that have blocks on the disk.
  std::vector<ObjectDigest> digests() const;

  void set_limit(std::uint64_t bytes);
  std::uint64_t limit_bytes() const;
  // What is used and what is about to be are more than the limit, because that sank, or more was
  // found.
  bool is_over_limit() const;
  // With what is unlinked and not free yet.
  std::uint64_t used_bytes() const;
  std::uint64_t held_bytes() const;
  // Of all promised blocks, each counted once, cached or not.
  std::uint64_t promised_bytes() const;

 private:
  // There may be millions: with its block in the eviction a small object takes some 70 bytes.
  struct Resident {
    ObjectDigest digest;
    std::uint32_t blocks = 0;  // No block from this one on has bytes.
    // Blocks with bytes, blocks with holds, and plans. 0: the number is free.
    std::uint32_t references = 0;
  };
  struct HasDigest;
  struct DigestHash;

  // Nothing when the block has no bytes and no holds.
  std::optional<BlockId> find(const ObjectDigest& digest, std::uint32_t block) const
      MR_REQUIRES(mutex_);
  BlockId name(const ObjectDigest& digest, std::uint32_t block) MR_REQUIRES(mutex_);
  std::uint64_t occupied_bytes() const MR_REQUIRES(mutex_);
  std::uint32_t bytes_of(BlockId id) const MR_REQUIRES(mutex_);
  void set_bytes(BlockId id, std::uint32_t bytes) MR_REQUIRES(mutex_);
  ReadPlanStretch stretch_of(std::span<const PlannedUse> uses, std::vector<std::uint32_t>& numbers);
  void drop_numbers(const std::vector<std::uint32_t>& numbers) MR_REQUIRES(mutex_);
  void remove(BlockId id) MR_REQUIRES(mutex_);
  void drop_reference(BlockId id) MR_REQUIRES(mutex_);

  struct Hold {
    std::uint32_t holders = 0;
    Promised promised;  // By some of these.
  };
  BlockId hold_block(const ObjectDigest& digest, std::uint32_t block) MR_REQUIRES(mutex_);
  void release_block(BlockId id) MR_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::uint64_t limit_bytes_ MR_GUARDED_BY(mutex_);
  std::uint64_t used_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t reserved_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::int64_t unlinked_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::deque<Resident> residents_ MR_GUARDED_BY(mutex_);  // By number.
  std::vector<std::uint32_t> free_numbers_ MR_GUARDED_BY(mutex_);
  SlotIndex numbers_ MR_GUARDED_BY(mutex_);  // By digest.
  // Victims that are being freed, and their bytes. They are not in the eviction.
  std::unordered_map<BlockId, std::uint32_t> leaving_ MR_GUARDED_BY(mutex_);
  std::unordered_map<BlockId, Hold> holds_ MR_GUARDED_BY(mutex_);
  std::uint64_t promised_bytes_ MR_GUARDED_BY(mutex_) = 0;
  // The objects that each plan refers to.
  std::map<PlanId, std::vector<std::uint32_t>> plan_numbers_ MR_GUARDED_BY(mutex_);
  Eviction eviction_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
