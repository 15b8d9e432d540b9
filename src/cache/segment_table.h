#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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
  // The digest must be there.
  void erase(const ObjectDigest& digest);
  // All places in the order in which they were written: by segment and slot.
  std::vector<const SegmentPlace*> oldest_first() const;
  // What the table takes in memory.
  std::size_t memory_bytes() const;

 private:
  SegmentPlace& at(std::uint32_t position);
  const SegmentPlace& at(std::uint32_t position) const;
  std::size_t home_of(const ObjectDigest& digest) const;
  std::size_t next(std::size_t bucket) const { return (bucket + 1) & (buckets_.size() - 1); }
  // The bucket that names the digest, or the empty one where it would go.
  std::size_t bucket_of(const ObjectDigest& digest) const;
  void empty_bucket(std::size_t bucket);
  void grow();

  std::vector<std::unique_ptr<SegmentPlace[]>> pieces_;
  std::vector<std::uint32_t> buckets_;  // Positions of places.
  std::uint32_t size_ = 0;
};

}  // namespace millrace
