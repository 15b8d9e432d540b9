#include "cache/object_map_format.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/unit.h"

namespace millrace {
namespace {

constexpr std::string_view kMapMagic = "MRCACMAP";
constexpr std::uint32_t kMapFormat = 1;

// Offsets in the header.
constexpr std::size_t kFormatAt = 8;
constexpr std::size_t kChecksumAt = 12;  // CRC-32C of the whole header with this field zero.
constexpr std::size_t kHeaderBytesAt = 16;
constexpr std::size_t kUnitBytesAt = 20;
constexpr std::size_t kSizeAt = 24;
constexpr std::size_t kStoreBytesAt = 32;
constexpr std::size_t kKeyBytesAt = 36;
constexpr std::size_t kIdentityBytesAt = 40;
constexpr std::size_t kTextsAt = 48;

std::uint32_t header_checksum(ByteView header) {
  constexpr std::array<std::byte, 4> kZero{};
  const std::uint32_t before = crc32c(header.first(kChecksumAt));
  return crc32c(header.subspan(kChecksumAt + 4), crc32c(kZero, before));
}

std::unexpected<Status> damaged_map(std::string_view why) {
  return failure(StatusCode::kCorruption, fmt::format("the map's header {}", why));
}

std::uint32_t seal_of(const ObjectDigest& digest, std::uint32_t unit, std::uint32_t checksum) {
  std::array<std::byte, 8> numbers;
  store_little_endian(numbers.data(), unit);
  store_little_endian(numbers.data() + 4, checksum);
  const std::uint32_t seal = crc32c(numbers, crc32c(digest.bytes));
  // A record of zeros means that there is none.
  return seal == 0 ? 1 : seal;
}

}  // namespace

Result<std::string> encode_map_header(const ObjectVersion& version) {
  const std::string_view store = version.store().value();
  const std::string_view key = version.key().value();
  const std::string_view identity = version.identity().value();
  const std::size_t used = kTextsAt + store.size() + key.size() + identity.size();
  const std::size_t bytes =
      (used + kMapHeaderAlignment - 1) / kMapHeaderAlignment * kMapHeaderAlignment;
  if (bytes > kMapHeaderBytesMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("store, key and identity have {} bytes together, and a cache map "
                               "takes at most {}",
                               used - kTextsAt, kMapHeaderBytesMax - kTextsAt));
  }
  std::string header(bytes, '\0');
  auto* const out = reinterpret_cast<std::byte*>(header.data());
  std::memcpy(out, kMapMagic.data(), kMapMagic.size());
  store_little_endian(out + kFormatAt, kMapFormat);
  store_little_endian(out + kHeaderBytesAt, static_cast<std::uint32_t>(bytes));
  store_little_endian(out + kUnitBytesAt, static_cast<std::uint32_t>(kUnitBytes));
  store_little_endian(out + kSizeAt, version.size());
  store_little_endian(out + kStoreBytesAt, static_cast<std::uint32_t>(store.size()));
  store_little_endian(out + kKeyBytesAt, static_cast<std::uint32_t>(key.size()));
  store_little_endian(out + kIdentityBytesAt, static_cast<std::uint32_t>(identity.size()));
  std::size_t at = kTextsAt;
  for (const std::string_view text : {store, key, identity}) {
    header.replace(at, text.size(), text);
    at += text.size();
  }
  store_little_endian(out + kChecksumAt, header_checksum(as_bytes(header)));
  return header;
}

Result<MapHeader> decode_map_header(ByteView bytes) {
  if (bytes.size() < kMapHeaderAlignment) return damaged_map("is cut short");
  if (!as_text(bytes).starts_with(kMapMagic)) return damaged_map("does not start as one");
  const auto field = [&](std::size_t at) { return load_little_endian<std::uint32_t>(&bytes[at]); };
  const std::uint32_t header_bytes = field(kHeaderBytesAt);
  const std::uint32_t format = field(kFormatAt);
  const bool plausible = header_bytes >= kMapHeaderAlignment && header_bytes <= bytes.size() &&
                         header_bytes % kMapHeaderAlignment == 0;
  const bool sound = plausible && header_checksum(bytes.first(header_bytes)) == field(kChecksumAt);
  // A flipped bit is no later format. A format whose header we could not even check would have
  // another number in the directory's format file, and not get here.
  if (format != kMapFormat && sound) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the map has format {}, and this Millrace knows format {}", format,
                               kMapFormat));
  }
  if (!sound) return damaged_map("does not fit its checksum");
  const std::uint64_t store_bytes = field(kStoreBytesAt);
  const std::uint64_t key_bytes = field(kKeyBytesAt);
  const std::uint64_t identity_bytes = field(kIdentityBytesAt);
  if (kTextsAt + store_bytes + key_bytes + identity_bytes > header_bytes ||
      field(kUnitBytesAt) != kUnitBytes) {
    return damaged_map("has fields that do not fit each other");
  }
  const std::string_view texts = as_text(bytes).substr(kTextsAt);
  return MapHeader{
      ObjectVersion(
          StoreId(std::string(texts.substr(0, store_bytes))),
          ObjectKey(std::string(texts.substr(store_bytes, key_bytes))),
          ObjectIdentity(std::string(texts.substr(store_bytes + key_bytes, identity_bytes))),
          load_little_endian<std::uint64_t>(&bytes[kSizeAt])),
      header_bytes};
}

MapRecord encode_map_record(const ObjectDigest& digest, std::uint32_t unit,
                            std::uint32_t checksum) {
  MapRecord record;
  store_little_endian(record.data(), checksum);
  store_little_endian(record.data() + 4, seal_of(digest, unit, checksum));
  return record;
}

DecodedMapRecord decode_map_record(const ObjectDigest& digest, std::uint32_t unit, ByteView bytes) {
  assert(bytes.size() == kMapRecordBytes);
  const auto checksum = load_little_endian<std::uint32_t>(bytes.data());
  const auto seal = load_little_endian<std::uint32_t>(bytes.data() + 4);
  if (checksum == 0 && seal == 0) return {};
  if (seal != seal_of(digest, unit, checksum)) return {MapRecordState::kDamaged, 0};
  return {MapRecordState::kSound, checksum};
}

}  // namespace millrace
