#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "cache/cache_directories.h"
#include "cache/lease.h"
#include "cache/leased_blocks.h"

namespace millrace {

// Adds up what a lease takes of each disk beside what others have promised, before it is granted.
//
// Invariants:
//  1. A block counts once, however many ranges touch it. Ranges of one object are added one after
//     the other, and in order.
//  2. What others have promised as well takes no room twice.
//
// The limits are those of its making. Not shared between threads; the directories outlive it.
class LeaseSize {
 public:
  // Looks at the disks. A lease of the same name does not count among the others. Blocks.
  LeaseSize(CacheDirectories& directories, LeaseId id, LeaseKind kind);

  void add(const LeasedRange& range);
  // Merged ones, in order.
  void add(const LeasedBlocks& blocks);
  // Adds as many blocks from the range's start as there is room for. Returns how many of its bytes
  // these have.
  std::uint64_t add_what_fits(const LeasedRange& range);

  // What was added.
  std::uint64_t bytes() const;
  std::uint64_t limit_bytes() const;
  // What others have promised and was not added.
  std::uint64_t leased_bytes() const;
  // By how much it is too much: more than the sum says, where one disk is full before another.
  std::uint64_t short_bytes() const;

 private:
  struct Part {
    std::uint64_t limit_bytes = 0;
    std::uint64_t promised_bytes = 0;  // By others.
    std::uint64_t added_bytes = 0;
    std::uint64_t shared_bytes = 0;  // Of the added: others have promised them.

    // What is taken when all of it is there.
    std::uint64_t taken_bytes() const;
    bool has_room(std::uint64_t bytes) const { return taken_bytes() + bytes <= limit_bytes; }
  };
  struct BlockName {
    ObjectDigest digest;
    std::uint32_t block = 0;
    bool operator==(const BlockName&) const = default;
  };

  bool is_shared(CacheDirectory& directory, const BlockName& block) const;
  // False, and nothing is added, when there has to be room and is none.
  bool add_block(const BlockName& block, std::uint32_t bytes, bool if_it_fits);

  CacheDirectories& directories_;
  const LeaseId id_;
  const LeaseKind kind_;
  std::map<const CacheDirectory*, Part> parts_;
  std::optional<BlockName> last_;
};

}  // namespace millrace
