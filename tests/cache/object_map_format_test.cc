#include "cache/object_map_format.h"

#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/hex.h"
#include "base/little_endian.h"
#include "cache/unit.h"

namespace millrace {
namespace {

const ObjectVersion kMapFormatVersion(StoreId("s3://b at https://h"), ObjectKey("a/b.jpg"),
                                      ObjectIdentity("\"etag\""), 5 * kMiB + 7);
constexpr std::size_t kMapTextsEnd = 48 + 19 + 7 + 6;

std::string some_map_header() {
  const Result<std::string> header = encode_map_header(kMapFormatVersion);
  EXPECT_TRUE(header);
  return *header;
}

// Changes a field and puts the right checksum in.
std::string with_map_field(std::string header, std::size_t at, std::uint32_t value) {
  auto* const bytes = reinterpret_cast<std::byte*>(header.data());
  store_little_endian(bytes + at, value);
  store_little_endian(bytes + 12, std::uint32_t{0});
  store_little_endian(bytes + 12, crc32c(as_bytes(header)));
  return header;
}

StatusCode map_refusal(std::string_view header) {
  const Result<MapHeader> decoded = decode_map_header(as_bytes(header));
  return decoded ? StatusCode::kOk : decoded.error().code();
}

// These bytes were made by another program from docs/formats/cache.md.
TEST(MapHeader, HasTheBytesOfTheDocument) {
  const std::string header = some_map_header();
  ASSERT_EQ(header.size(), kMapHeaderAlignment);
  EXPECT_EQ(to_hex(as_bytes(header).first(kMapTextsEnd)),
            "4d524341434d4150010000008f0f114d00100000000001000700500000000000"
            "1300000007000000060000000000000073333a2f2f622061742068747470733a"
            "2f2f68612f622e6a7067226574616722");
  EXPECT_EQ(header.find_first_not_of('\0', kMapTextsEnd), std::string::npos);
}

TEST(MapHeader, SurvivesTheDisk) {
  const Result<MapHeader> header = decode_map_header(as_bytes(some_map_header()));
  ASSERT_TRUE(header);
  EXPECT_EQ(header->version.digest(), kMapFormatVersion.digest());
  EXPECT_EQ(header->version.store(), kMapFormatVersion.store());
  EXPECT_EQ(header->version.key(), kMapFormatVersion.key());
  EXPECT_EQ(header->version.identity(), kMapFormatVersion.identity());
  EXPECT_EQ(header->version.size(), kMapFormatVersion.size());
  EXPECT_EQ(header->records_offset, kMapHeaderAlignment);
}

TEST(MapHeader, NoFlipPasses) {
  std::string header = some_map_header();
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    header[bit / 8] = static_cast<char>(header[bit / 8] ^ (1 << (bit % 8)));
    ASSERT_EQ(map_refusal(header), StatusCode::kCorruption) << "bit " << bit;
    header[bit / 8] = static_cast<char>(header[bit / 8] ^ (1 << (bit % 8)));
  }
  EXPECT_EQ(map_refusal(header), StatusCode::kOk);
}

TEST(MapHeader, NoShorterOnePasses) {
  const std::string header = some_map_header();
  for (std::size_t size = 0; size < header.size(); ++size)
    ASSERT_EQ(map_refusal(std::string_view(header).substr(0, size)), StatusCode::kCorruption);
  // What follows it is no part of it.
  EXPECT_EQ(map_refusal(header + "records"), StatusCode::kOk);
}

TEST(MapHeader, ALaterFormatIsToldFromDamage) {
  const std::string header = some_map_header();
  EXPECT_EQ(map_refusal(with_map_field(header, 8, 2)), StatusCode::kUnsupported);
  std::string damaged = header;
  damaged[8] = 2;
  EXPECT_EQ(map_refusal(damaged), StatusCode::kCorruption);
}

TEST(MapHeader, SoundBytesWithFieldsThatDoNotFitAreRefused) {
  const std::string header = some_map_header();
  EXPECT_EQ(map_refusal(with_map_field(header, 8, 1)), StatusCode::kOk);
  for (const std::size_t at : {16, 20, 32, 36, 40}) {
    for (const std::uint32_t value : {1u, 0x7fffffffu, UINT32_MAX, UINT32_MAX - 4095}) {
      // Short texts are another version, and no damage.
      if (at >= 32 && value == 1) continue;
      EXPECT_EQ(map_refusal(with_map_field(header, at, value)), StatusCode::kCorruption)
          << at << " " << value;
    }
  }
}

TEST(MapHeader, TakesWholePagesUpToALimit) {
  const auto with_key = [](std::size_t bytes) {
    return encode_map_header(
        ObjectVersion(StoreId(""), ObjectKey(std::string(bytes, 'k')), ObjectIdentity(""), 1));
  };
  EXPECT_EQ(with_key(4096 - 48)->size(), 4096u);
  EXPECT_EQ(with_key(4096 - 47)->size(), 8192u);
  EXPECT_EQ(decode_map_header(as_bytes(*with_key(10'000)))->records_offset, 12'288u);
  EXPECT_EQ(with_key(kMapHeaderBytesMax - 48)->size(), kMapHeaderBytesMax);
  EXPECT_EQ(with_key(kMapHeaderBytesMax - 47).error().code(), StatusCode::kInvalidArgument);
  // Its second page is missing.
  EXPECT_EQ(map_refusal(with_key(5000)->substr(0, 4096)), StatusCode::kCorruption);
}

TEST(MapRecord, HasTheBytesOfTheDocument) {
  const ObjectDigest& digest = kMapFormatVersion.digest();
  EXPECT_EQ(to_hex(encode_map_record(digest, 0, 0x11223344)), "4433221120dfef30");
  EXPECT_EQ(to_hex(encode_map_record(digest, 1, 0x11223344)), "4433221107a2d379");
  EXPECT_EQ(to_hex(encode_map_record(digest, 2, 0)), "00000000179a20b3");
}

TEST(MapRecord, NoFlipPasses) {
  const ObjectDigest& digest = kMapFormatVersion.digest();
  for (const std::uint32_t checksum : {0u, 1u, 0x11223344u, UINT32_MAX}) {
    for (std::uint32_t unit = 0; unit < 100; ++unit) {
      MapRecord record = encode_map_record(digest, unit, checksum);
      const DecodedMapRecord sound = decode_map_record(digest, unit, record);
      ASSERT_EQ(sound.state, MapRecordState::kSound);
      ASSERT_EQ(sound.checksum, checksum);
      for (std::size_t bit = 0; bit < record.size() * 8; ++bit) {
        record[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        ASSERT_EQ(decode_map_record(digest, unit, record).state, MapRecordState::kDamaged);
        record[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      }
    }
  }
}

TEST(MapRecord, BelongsToOneUnitOfOneObject) {
  const ObjectDigest& digest = kMapFormatVersion.digest();
  const MapRecord record = encode_map_record(digest, 7, 0xabcdef01);
  for (std::uint32_t unit = 0; unit < 10'000; ++unit) {
    ASSERT_EQ(decode_map_record(digest, unit, record).state,
              unit == 7 ? MapRecordState::kSound : MapRecordState::kDamaged);
  }
  for (std::size_t bit = 0; bit < 128; ++bit) {
    ObjectDigest other = digest;
    other.bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    ASSERT_EQ(decode_map_record(other, 7, record).state, MapRecordState::kDamaged);
  }
}

TEST(MapRecord, ZerosAreNone) {
  EXPECT_EQ(decode_map_record(kMapFormatVersion.digest(), 0, MapRecord{}).state,
            MapRecordState::kEmpty);
}

}  // namespace
}  // namespace millrace
