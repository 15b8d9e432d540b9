#include "cache/segment_table.h"

#include <algorithm>
#include <cassert>
#include <functional>
#include <tuple>

namespace millrace {
namespace {

constexpr std::uint32_t kNoSegmentPlace = UINT32_MAX;
constexpr std::uint32_t kPlacesPerPiece = 4096;
constexpr std::size_t kSegmentBucketsMin = 64;

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

SegmentPlace& SegmentTable::at(std::uint32_t position) {
  return pieces_[position / kPlacesPerPiece][position % kPlacesPerPiece];
}
const SegmentPlace& SegmentTable::at(std::uint32_t position) const {
  return pieces_[position / kPlacesPerPiece][position % kPlacesPerPiece];
}

std::size_t SegmentTable::home_of(const ObjectDigest& digest) const {
  return std::hash<ObjectDigest>{}(digest) & (buckets_.size() - 1);
}

std::size_t SegmentTable::bucket_of(const ObjectDigest& digest) const {
  std::size_t bucket = home_of(digest);
  while (buckets_[bucket] != kNoSegmentPlace && at(buckets_[bucket]).digest != digest)
    bucket = next(bucket);
  return bucket;
}

const SegmentPlace* SegmentTable::find(const ObjectDigest& digest) const {
  const std::uint32_t position = buckets_[bucket_of(digest)];
  return position == kNoSegmentPlace ? nullptr : &at(position);
}

void SegmentTable::insert(const SegmentPlace& place) {
  if (std::size_t{size_} + 1 > buckets_.size() / 4 * 3) grow();
  if (size_ % kPlacesPerPiece == 0 && size_ / kPlacesPerPiece == pieces_.size()) {
    pieces_.push_back(std::make_unique<SegmentPlace[]>(kPlacesPerPiece));
  }
  const std::size_t bucket = bucket_of(place.digest);
  assert(buckets_[bucket] == kNoSegmentPlace);
  buckets_[bucket] = size_;
  at(size_++) = place;
}

void SegmentTable::erase(const ObjectDigest& digest) {
  const std::size_t bucket = bucket_of(digest);
  const std::uint32_t hole = buckets_[bucket];
  assert(hole != kNoSegmentPlace);
  empty_bucket(bucket);
  // The last place fills the hole.
  const std::uint32_t last = --size_;
  if (hole != last) {
    buckets_[bucket_of(at(last).digest)] = hole;
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
    const std::size_t home = home_of(at(buckets_[probe]).digest);
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
    std::size_t bucket = home_of(at(position).digest);
    while (buckets_[bucket] != kNoSegmentPlace)
      bucket = next(bucket);
    buckets_[bucket] = position;
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
