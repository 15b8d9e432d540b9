#include "cache/segment_table.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <tuple>
#include <utility>

#include "base/little_endian.h"

namespace millrace {
namespace {

// As a position it would be beyond what the buckets can name.
constexpr std::uint32_t kNoSegmentPlace = UINT32_MAX;
constexpr std::size_t kSegmentBucketsMin = 64;
// In a large table nearly every look misses the processor's caches. Where it is known what comes
// next, so many misses are waited for at a time.
constexpr std::uint32_t kPrefetchedAhead = 16;

}  // namespace

SegmentPlace segment_place(const SegmentEntry& entry, std::uint32_t slot) {
  return {.digest = entry.digest,
          .segment = entry.segment,
          .page = entry.page,
          .slot = slot,
          .pages = static_cast<std::uint16_t>(entry.pages()),
          .header_lines = static_cast<std::uint16_t>(entry.header_bytes / 64)};
}

SegmentTable::SegmentTable() : buckets_(kSegmentBucketsMin, kNoSegmentPlace) {}

std::uint32_t SegmentTable::name_of(std::uint32_t position, const ObjectDigest& digest) const {
  // Other bytes than those that choose the bucket.
  const auto hint = load_little_endian<std::uint32_t>(digest.bytes.data() + 12);
  return position | (hint & ~position_bits());
}

std::size_t SegmentTable::bucket_of(const ObjectDigest& digest) const {
  const std::uint32_t hint = name_of(0, digest);
  std::size_t bucket = home_of(digest);
  for (; buckets_[bucket] != kNoSegmentPlace; bucket = next(bucket)) {
    const bool may_be = (buckets_[bucket] & ~position_bits()) == hint;
    if (may_be && at(named_by(bucket)).digest == digest) break;
  }
  return bucket;
}

const SegmentPlace* SegmentTable::find(const ObjectDigest& digest) const {
  const std::size_t bucket = bucket_of(digest);
  return buckets_[bucket] == kNoSegmentPlace ? nullptr : &at(named_by(bucket));
}

void SegmentTable::make_room() {
  if (std::size_t{size_} + 1 > buckets_.size() / 4 * 3) grow();
  if (size_ % kPlacesPerPiece == 0 && size_ / kPlacesPerPiece == pieces_.size()) {
    pieces_.push_back(std::make_unique<SegmentPlace[]>(kPlacesPerPiece));
  }
}

void SegmentTable::fill_bucket(std::size_t bucket, const SegmentPlace& place) {
  buckets_[bucket] = name_of(size_, place.digest);
  at(size_++) = place;
}

void SegmentTable::insert(const SegmentPlace& place) {
  make_room();
  const std::size_t bucket = bucket_of(place.digest);
  assert(buckets_[bucket] == kNoSegmentPlace);
  fill_bucket(bucket, place);
}

void SegmentTable::insert_or_replace(std::span<const SegmentPlace> places,
                                     const Replaced& replaced) {
  for (std::size_t i = 0; i < places.size(); ++i) {
    make_room();
    if (i + kPrefetchedAhead < places.size()) {
      __builtin_prefetch(&buckets_[home_of(places[i + kPrefetchedAhead].digest)]);
    }
    const std::size_t bucket = bucket_of(places[i].digest);
    if (buckets_[bucket] == kNoSegmentPlace) {
      fill_bucket(bucket, places[i]);
    } else {
      const SegmentPlace older = std::exchange(at(named_by(bucket)), places[i]);
      replaced(older);
    }
  }
}

void SegmentTable::erase(const ObjectDigest& digest) {
  const std::size_t bucket = bucket_of(digest);
  assert(buckets_[bucket] != kNoSegmentPlace);
  const std::uint32_t hole = named_by(bucket);
  empty_bucket(bucket);
  // The last place fills the hole.
  const std::uint32_t last = --size_;
  if (hole != last) {
    const ObjectDigest& moved = at(last).digest;
    buckets_[bucket_of(moved)] = name_of(hole, moved);
    at(hole) = at(last);
  }
  // One piece stays in hand, so that a change back and forth at its edge allocates nothing.
  if (pieces_.size() > size_ / kPlacesPerPiece + 2) pieces_.pop_back();
}

// Moves up what would no longer be found across the gap.
void SegmentTable::empty_bucket(std::size_t bucket) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t gap = bucket;
  for (std::size_t probe = next(gap); buckets_[probe] != kNoSegmentPlace; probe = next(probe)) {
    const std::size_t home = home_of(at(named_by(probe)).digest);
    if (((probe - home) & mask) >= ((probe - gap) & mask)) {
      buckets_[gap] = buckets_[probe];
      gap = probe;
    }
  }
  buckets_[gap] = kNoSegmentPlace;
}

void SegmentTable::grow() {
  buckets_ = std::vector<std::uint32_t>(buckets_.size() * 2, kNoSegmentPlace);
  for (std::uint32_t position = 0; position < size_; ++position) {
    if (position + kPrefetchedAhead < size_) {
      __builtin_prefetch(&buckets_[home_of(at(position + kPrefetchedAhead).digest)]);
    }
    const ObjectDigest& digest = at(position).digest;
    std::size_t bucket = home_of(digest);
    while (buckets_[bucket] != kNoSegmentPlace)
      bucket = next(bucket);
    buckets_[bucket] = name_of(position, digest);
  }
}

std::vector<const SegmentPlace*> SegmentTable::oldest_first() const {
  std::vector<const SegmentPlace*> places(size_);
  for (std::uint32_t position = 0; position < size_; ++position) {
    places[position] = &at(position);
  }
  const auto age = [](const SegmentPlace* place) {
    return std::tuple(place->segment, place->slot);
  };
  // After a start they are in order already.
  if (!std::ranges::is_sorted(places, {}, age)) std::ranges::sort(places, {}, age);
  return places;
}

std::size_t SegmentTable::memory_bytes() const {
  return pieces_.size() * kPlacesPerPiece * sizeof(SegmentPlace) +
         pieces_.capacity() * sizeof(pieces_[0]) + buckets_.size() * sizeof(buckets_[0]);
}

}  // namespace millrace
