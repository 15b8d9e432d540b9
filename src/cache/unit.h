#pragma once

#include <algorithm>
#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// A unit is what has a presence bit and a checksum; a block is what is evicted together. The last
// one of an object may be shorter.
inline constexpr std::uint64_t kUnitBytes = 64 * kKiB;
inline constexpr std::uint32_t kBlockUnits = 64;
inline constexpr std::uint64_t kBlockBytes = kBlockUnits * kUnitBytes;

// What is fetched at a time of an object that a job reads by a plan. Shuffled samples are needed
// from all over a window long before any block of it is needed whole: larger pieces would come
// later than they are wanted, smaller ones cost a request each.
inline constexpr std::uint32_t kPlannedPieceUnits = 16;
inline constexpr std::uint64_t kPlannedPieceBytes = kPlannedPieceUnits * kUnitBytes;
inline constexpr std::uint32_t kBlockPieces = kBlockUnits / kPlannedPieceUnits;

// Objects up to this size live in segment files and come and go whole; larger ones have files of
// their own.
inline constexpr std::uint64_t kSmallObjectBytesMax = kMiB;

// The units [first, first + count) of an object.
struct UnitRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return first + count; }
  bool empty() const { return count == 0; }
  bool operator==(const UnitRange&) const = default;
};

inline std::uint32_t unit_count(std::uint64_t object_size) {
  return static_cast<std::uint32_t>((object_size + kUnitBytes - 1) / kUnitBytes);
}
inline std::uint32_t block_count(std::uint64_t object_size) {
  return static_cast<std::uint32_t>((object_size + kBlockBytes - 1) / kBlockBytes);
}

// The units that a range of bytes touches.
inline UnitRange units_of(ByteRange bytes) {
  if (bytes.empty()) return {static_cast<std::uint32_t>(bytes.offset / kUnitBytes), 0};
  const auto first = static_cast<std::uint32_t>(bytes.offset / kUnitBytes);
  return {first, static_cast<std::uint32_t>((bytes.end() - 1) / kUnitBytes) - first + 1};
}

// The bytes of a range of units, cut at the object's end.
inline ByteRange bytes_of(UnitRange units, std::uint64_t object_size) {
  const std::uint64_t begin = std::min(units.first * kUnitBytes, object_size);
  const std::uint64_t end = std::min(units.end() * kUnitBytes, object_size);
  return {begin, end - begin};
}

}  // namespace millrace
