#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cache/object_version.h"
#include "cache/segment_format.h"

namespace millrace {

// Where a record is: 32 bytes, because there are millions.
struct SegmentPlace {
  ObjectDigest digest;
  std::uint32_t segment = 0;
  std::uint32_t page = 0;
  std::uint32_t slot = 0;  // Of its entry in the index.
  std::uint16_t pages = 0;
  std::uint16_t header_lines = 0;  // Of 64 bytes.

  std::uint64_t bytes() const { return std::uint64_t{pages} * kSegmentPageBytes; }
  std::uint64_t offset() const { return std::uint64_t{page} * kSegmentPageBytes; }
  std::size_t header_bytes() const { return std::size_t{header_lines} * 64; }
  bool operator==(const SegmentPlace&) const = default;
};
static_assert(sizeof(SegmentPlace) == 32);

SegmentPlace segment_place(const SegmentEntry& entry, std::uint32_t slot);

// Finds the place of a record by its digest, in at most 43 bytes of memory each.
//
// Invariants:
//  1. Places lie densely, in pieces that never move: growing needs no second copy.
//  2. Each place is named by exactly one bucket; buckets are a power of two and at most three
//     quarters full. Digests are hashes already, so the bucket of a digest is its first bytes.
//     The bits of a bucket that no position needs hold some of the digest: a search looks at
//     hardly any place but the right one, for each costs a miss of the processor's caches.
//  3. Between the bucket of a digest and the one that names it, none is empty.
//
// Thread-compatible.
class SegmentTable {
 public:
  SegmentTable();

  std::size_t size() const { return size_; }
  // The place, valid until the next change; or null.
  const SegmentPlace* find(const ObjectDigest& digest) const;
  // The digest must not be there.
  void insert(const SegmentPlace& place);
  // Inserts many at a time, for far less each. One whose digest is there already takes the place of
  // the older one, which `replaced` is told; it must not call the table.
  using Replaced = std::function<void(const SegmentPlace& older)>;
  void insert_or_replace(std::span<const SegmentPlace> places, const Replaced& replaced);
  // The digest must be there.
  void erase(const ObjectDigest& digest);
  // All places in the order in which they were written: by segment and slot.
  std::vector<const SegmentPlace*> oldest_first() const;
  // What the table takes in memory.
  std::size_t memory_bytes() const;

 private:
  static constexpr std::uint32_t kPlacesPerPiece = 4096;

  // Here, so that they are inlined: a start calls them millions of times.
  SegmentPlace& at(std::uint32_t position) {
    return pieces_[position / kPlacesPerPiece][position % kPlacesPerPiece];
  }
  const SegmentPlace& at(std::uint32_t position) const {
    return pieces_[position / kPlacesPerPiece][position % kPlacesPerPiece];
  }
  std::size_t home_of(const ObjectDigest& digest) const {
    return std::hash<ObjectDigest>{}(digest) & (buckets_.size() - 1);
  }
  // The bits that are positions, which are smaller than the number of buckets.
  std::uint32_t position_bits() const { return static_cast<std::uint32_t>(buckets_.size() - 1); }
  // What a bucket says that names a place.
  std::uint32_t name_of(std::uint32_t position, const ObjectDigest& digest) const;
  // The position that a bucket names.
  std::uint32_t named_by(std::size_t bucket) const { return buckets_[bucket] & position_bits(); }
  std::size_t next(std::size_t bucket) const { return (bucket + 1) & (buckets_.size() - 1); }
  // The bucket that names the digest, or the empty one where it would go.
  std::size_t bucket_of(const ObjectDigest& digest) const;
  // Makes room for one more, which may move the buckets.
  void make_room();
  void fill_bucket(std::size_t bucket, const SegmentPlace& place);
  void empty_bucket(std::size_t bucket);
  void grow();

  std::vector<std::unique_ptr<SegmentPlace[]>> pieces_;
  std::vector<std::uint32_t> buckets_;
  std::uint32_t size_ = 0;
};

}  // namespace millrace
