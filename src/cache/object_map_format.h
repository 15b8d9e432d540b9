#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "cache/object_version.h"

namespace millrace {

// The bytes of a map file; docs/formats/cache.md has the tables.
inline constexpr std::size_t kMapRecordBytes = 8;
// A map's header takes whole pages, so that records never share a sector with it.
inline constexpr std::size_t kMapHeaderAlignment = 4096;
inline constexpr std::size_t kMapHeaderBytesMax = 16 * kMapHeaderAlignment;

// A header, padded to the alignment. kInvalidArgument when the texts do not fit.
Result<std::string> encode_map_header(const ObjectVersion& version);

struct MapHeader {
  ObjectVersion version;
  std::uint64_t records_offset = 0;
};
// `bytes` are the first of the file, as many as kMapHeaderBytesMax if it has them. kCorruption, or
// kUnsupported for a later format.
Result<MapHeader> decode_map_header(ByteView bytes);

using MapRecord = std::array<std::byte, kMapRecordBytes>;

// Seals the checksum of a unit, so that a flip of any bit of the record is noticed, and a record
// of another unit or object is no record of this one.
MapRecord encode_map_record(const ObjectDigest& digest, std::uint32_t unit, std::uint32_t checksum);

enum class MapRecordState : std::uint8_t { kEmpty, kSound, kDamaged };
struct DecodedMapRecord {
  MapRecordState state = MapRecordState::kEmpty;
  std::uint32_t checksum = 0;
};
DecodedMapRecord decode_map_record(const ObjectDigest& digest, std::uint32_t unit, ByteView bytes);

}  // namespace millrace
