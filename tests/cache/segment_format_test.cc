#include "cache/segment_format.h"

#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

const ObjectVersion kSegmentFormatVersion(StoreId("s3://b at https://h"), ObjectKey("a/b.jpg"),
                                          ObjectIdentity("\"etag\""), 70'000);

SegmentEntry some_segment_entry() {
  return {.digest = kSegmentFormatVersion.digest(),
          .segment = 7,
          .page = 3,
          .header_bytes = 192,
          .stored_bytes = 70'000,
          .object_bytes = 70'000};
}

template <class Bytes>
Bytes with_segment_flip(Bytes bytes, std::size_t bit) {
  bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
  return bytes;
}

TEST(SegmentName, IsEightLowerCaseDigitsAndAnExtension) {
  EXPECT_EQ(segment_data_name(0x2a), "0000002a.seg");
  EXPECT_EQ(segment_index_name(0xffffffff), "ffffffff.idx");
  EXPECT_EQ(parse_segment_name("0000002a.seg")->segment, 0x2aU);
  EXPECT_FALSE(parse_segment_name("0000002a.seg")->is_index);
  EXPECT_TRUE(parse_segment_name("ffffffff.idx")->is_index);
  for (const char* name : {"", "2a.seg", "0000002A.seg", "0000002a.tmp", "0x00002a.seg",
                           "-000002a.seg", "0000002a.seg2", "00000 2a.idx"}) {
    EXPECT_FALSE(parse_segment_name(name)) << name;
  }
}

TEST(SegmentIndexHeader, NoFlipPasses) {
  const SegmentBlock header = encode_segment_index_header(7);
  EXPECT_TRUE(check_segment_index_header(header, 7).ok());
  EXPECT_EQ(check_segment_index_header(header, 8), StatusCode::kCorruption);
  EXPECT_EQ(check_segment_index_header(ByteView(header).first(63), 7), StatusCode::kCorruption);
  for (std::size_t bit = 0; bit < header.size() * 8; ++bit) {
    EXPECT_EQ(check_segment_index_header(with_segment_flip(header, bit), 7),
              StatusCode::kCorruption);
  }
}

TEST(SegmentIndexHeader, ALaterFormatIsToldFromDamage) {
  SegmentBlock header = encode_segment_index_header(7);
  store_little_endian(header.data() + 8, std::uint32_t{2});
  EXPECT_EQ(check_segment_index_header(header, 7), StatusCode::kCorruption);
  store_little_endian(header.data() + 60, crc32c(ByteView(header).first(60)));
  EXPECT_EQ(check_segment_index_header(header, 7), StatusCode::kUnsupported);
}

TEST(SegmentEntry, SurvivesTheDisk) {
  const auto entry = decode_segment_entry(encode_segment_entry(some_segment_entry()), 7);
  ASSERT_TRUE(entry && *entry);
  EXPECT_EQ(**entry, some_segment_entry());
  EXPECT_EQ((*entry)->pages(), 18U);
  const auto dead = decode_segment_entry(encode_dead_segment_entry(7), 7);
  ASSERT_TRUE(dead);
  EXPECT_FALSE(*dead);
}

TEST(SegmentEntry, NoFlipPasses) {
  for (const SegmentBlock& block :
       {encode_segment_entry(some_segment_entry()), encode_dead_segment_entry(7)}) {
    EXPECT_FALSE(decode_segment_entry(block, 8));
    for (std::size_t bit = 0; bit < block.size() * 8; ++bit) {
      EXPECT_FALSE(decode_segment_entry(with_segment_flip(block, bit), 7)) << bit;
    }
  }
  EXPECT_EQ(decode_segment_entry(SegmentBlock{}, 0).error().message(), "it is all zeros");
}

TEST(SegmentEntry, NumbersThatNoRecordHasAreRefused) {
  const auto refused = [](auto change) {
    SegmentEntry entry = some_segment_entry();
    change(entry);
    return !decode_segment_entry(encode_segment_entry(entry), 7);
  };
  EXPECT_FALSE(refused([](SegmentEntry&) {}));
  EXPECT_TRUE(refused([](SegmentEntry& entry) { entry.stored_bytes += 1; }));
  EXPECT_TRUE(refused([](SegmentEntry& entry) { entry.stored_bytes -= 1; }));
  EXPECT_TRUE(refused([](SegmentEntry& entry) { entry.header_bytes = 64; }));
  EXPECT_TRUE(refused([](SegmentEntry& entry) { entry.header_bytes = 200; }));
  EXPECT_TRUE(refused([](SegmentEntry& entry) { entry.header_bytes = UINT32_MAX - 63; }));
  EXPECT_TRUE(refused([](SegmentEntry& entry) {
    entry.stored_bytes = entry.object_bytes = kSmallObjectBytesMax + 1;
  }));
}

TEST(SegmentRecordHeader, SurvivesTheDisk) {
  const auto bytes =
      encode_segment_record_header(kSegmentFormatVersion, 70'000, std::array{1U, 2U});
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->size() % 64, 0U);
  const auto header = decode_segment_record_header(*bytes);
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->digest, kSegmentFormatVersion.digest());
  EXPECT_EQ(header->object_bytes, 70'000U);
  EXPECT_EQ(header->stored_bytes, 70'000U);
  EXPECT_EQ(header->checksums[0], 1U);
  EXPECT_EQ(header->checksums[1], 2U);
  EXPECT_EQ(header->checksums[2], 0U);
  EXPECT_EQ(header->store, kSegmentFormatVersion.store().value());
  EXPECT_EQ(header->key, kSegmentFormatVersion.key().value());
  EXPECT_EQ(header->identity, kSegmentFormatVersion.identity().value());
}

TEST(SegmentRecordHeader, NoFlipAndNoCutPasses) {
  const auto bytes =
      encode_segment_record_header(kSegmentFormatVersion, 70'000, std::array{1U, 2U}).value();
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    EXPECT_EQ(decode_segment_record_header(with_segment_flip(bytes, bit)).error(),
              StatusCode::kCorruption);
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode_segment_record_header(ByteView(bytes).first(size)));
  }
}

TEST(SegmentRecordHeader, TextsHaveALimit) {
  const auto with_key = [](std::size_t bytes) {
    return encode_segment_record_header(
        {StoreId("s"), ObjectKey(std::string(bytes, 'k')), ObjectIdentity("i"), 0}, 0, {});
  };
  const auto longest = with_key(kSegmentTextBytesMax - 2);
  ASSERT_TRUE(longest);
  EXPECT_TRUE(decode_segment_record_header(*longest));
  EXPECT_EQ(with_key(kSegmentTextBytesMax - 1).error(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
