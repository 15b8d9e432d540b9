#include "dataset/sample_block.h"

#include <random>

#include <gtest/gtest.h>

#include "dataset/sample_index_format.h"
#include "dataset/tar_format.h"

namespace millrace {
namespace {

// Samples as an archive may have them, odd ones too.
SampleBlock random_block(std::uint64_t seed, std::size_t samples) {
  std::mt19937_64 random(seed);
  const std::vector<SampleBlock::Shape> shapes = {
      {"jpg", "cls"}, {"jpg"}, {"JPG", "json", "seg.png", ""}, {"a", "b"}};
  SampleBlockWriter writer;
  std::uint64_t at = random() % 1000 * kTarBlockBytes;
  for (std::size_t n = 0; n < samples; ++n) {
    const SampleBlock::Shape& shape = shapes[random() % shapes.size()];
    std::vector<SampleBlock::Member> members;
    for (std::size_t field = 0; field < shape.size(); ++field) {
      at += random() % 3 * kTarBlockBytes;
      const std::uint64_t header_offset = at;
      at += (1 + random() % 3) * kTarBlockBytes;
      members.push_back({.header_offset = header_offset,
                         .offset = at,
                         .size = random() % (std::uint64_t{1} << random() % 40)});
      at += tar_padded(members.back().size);
    }
    const std::string key = "train/" + std::to_string(random() % 1000 + n * 1000);
    EXPECT_TRUE(writer.add(key, shape, members).ok());
  }
  return writer.take();
}

TEST(SampleBlock, ComesBackAsItWas) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SampleBlock block = random_block(seed, 1 + seed * 7);
    const auto decoded = decode_sample_block(encode_sample_block(block));
    ASSERT_TRUE(decoded) << decoded.error().to_string();
    EXPECT_EQ(*decoded, block);
  }
}

TEST(SampleBlock, RangeIsFromTheFirstHeaderToTheLastByte) {
  SampleBlockWriter writer;
  ASSERT_TRUE(writer
                  .add("a", {"x", "y"},
                       {{.header_offset = 512, .offset = 1024, .size = 3},
                        {.header_offset = 1536, .offset = 2048, .size = 10}})
                  .ok());
  const SampleBlock block = writer.take();
  EXPECT_EQ(block.range(block.samples[0]), (ByteRange{512, 2058 - 512}));
}

TEST(SampleBlock, CutOrChangedItIsRefusedOrPossible) {
  const std::vector<std::byte> bytes = encode_sample_block(random_block(1, 20));
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_sample_block(ByteView(bytes).first(size))) << size;
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(decode_sample_block(longer));
  for (std::size_t at = 0; at < bytes.size() * 8; ++at) {
    std::vector<std::byte> flipped = bytes;
    flipped[at / 8] ^= std::byte{1} << at % 8;
    const auto decoded = decode_sample_block(flipped);
    if (!decoded) {
      EXPECT_EQ(decoded.error().code(), StatusCode::kCorruption);
      continue;
    }
    // Whatever it says, it can be followed.
    std::uint64_t reached = 0;
    for (const SampleBlock::Member& member : decoded->members) {
      EXPECT_GE(member.header_offset, reached);
      EXPECT_GT(member.offset, member.header_offset);
      reached = member.offset + member.size;
    }
    for (const SampleBlock::Sample& sample : decoded->samples)
      EXPECT_LE(sample.first_member + decoded->member_count(sample), decoded->members.size());
  }
}

TEST(SampleBlock, WithoutAShapeThereIsNoSample) {
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{0}, std::byte{0}, std::byte{0}};
  EXPECT_FALSE(decode_sample_block(bytes));
}

TEST(SampleBlock, AFewBytesDoNotBecomeManySamples) {
  // 4096 samples of a shape with 4096 fields, and nothing behind it.
  SampleBlock::Shape shape;
  std::vector<SampleBlock::Member> members;
  for (int n = 0; n < 4096; ++n) {
    shape.push_back(std::to_string(n));
    members.push_back({.header_offset = std::uint64_t(n) * 1024, .offset = 512u + n * 1024});
  }
  SampleBlockWriter writer;
  ASSERT_TRUE(writer.add("k", shape, members).ok());
  std::vector<std::byte> bytes = encode_sample_block(writer.take());
  // The number of samples is the first; it takes one byte now and two then.
  bytes[0] = std::byte{0x80};
  bytes.insert(bytes.begin() + 1, std::byte{0x20});
  EXPECT_FALSE(decode_sample_block(bytes));
}

TEST(SampleBlock, SamplesThatCannotBeAreNamed) {
  SampleBlockWriter writer;
  const std::vector<SampleBlock::Member> two = {{.header_offset = 512, .offset = 1024},
                                                {.header_offset = 1024, .offset = 1536}};
  const Status twice = writer.add("a/b", {"jpg", "JPG"}, two);
  EXPECT_EQ(twice.code(), StatusCode::kCorruption);
  EXPECT_NE(twice.message().find("'a/b' at byte 512"), std::string::npos) << twice.message();
  const Status large =
      writer.add("a", SampleBlock::Shape(1, std::string(kSampleBlockBytesMax, 'x')), {two.front()});
  EXPECT_EQ(large.code(), StatusCode::kUnsupported);
}

SampleIndexTable small_table() {
  return {.content_digest = sha256(as_bytes(std::string_view("content"))),
          .shards = {{.entry = 3, .blocks = 2, .samples = 5},
                     {.entry = 7, .blocks = 0, .samples = 0},
                     {.entry = 9, .blocks = 1, .samples = 4}},
          .blocks = {{.stored_bytes = 10, .raw_bytes = 20, .samples = 4, .checksum = 1},
                     {.stored_bytes = 11, .raw_bytes = 20, .samples = 1, .checksum = 2},
                     {.stored_bytes = 12, .raw_bytes = 20, .samples = 4, .checksum = 3}}};
}

Result<SampleIndexTable> decode_all(ByteView bytes) {
  const std::uint64_t index_bytes = bytes.size() + 33;
  if (bytes.size() < kSampleTrailerBytes) return failure(StatusCode::kCorruption, "short");
  MR_ASSIGN_OR_RETURN(const SampleTrailer trailer,
                      decode_sample_trailer(bytes.last(kSampleTrailerBytes), index_bytes));
  if (trailer.table_bytes() + kSampleTrailerBytes != bytes.size()) {
    return failure(StatusCode::kCorruption, "other tables");
  }
  return decode_sample_tables(trailer, bytes.first(trailer.table_bytes()), index_bytes);
}

TEST(SampleTables, ComeBackAsTheyWereOrAreRefused) {
  const std::vector<std::byte> bytes = encode_sample_tables(small_table());
  const auto decoded = decode_all(bytes);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(*decoded, small_table());
  EXPECT_EQ(decoded->samples(), 9u);
  for (std::size_t at = 0; at < bytes.size() * 8; ++at) {
    std::vector<std::byte> flipped = bytes;
    flipped[at / 8] ^= std::byte{1} << at % 8;
    EXPECT_FALSE(decode_all(flipped)) << at;
  }
}

TEST(SampleTables, WhatIsWrongUnderRightChecksumsIsRefused) {
  std::vector<SampleIndexTable> wrong(7, small_table());
  wrong[0].shards[1].entry = 3;
  wrong[1].shards[0].samples = 6;
  wrong[2].shards[2].blocks = 2;
  wrong[3].blocks[0].stored_bytes = 0;
  wrong[4].blocks[0].samples = kSampleBlockSamplesMax + 1;
  wrong[5].blocks[0].raw_bytes = kSampleBlockBytesMax + 1;
  wrong[6].blocks[0].stored_bytes = 11;
  for (const SampleIndexTable& table : wrong)
    EXPECT_FALSE(decode_all(encode_sample_tables(table)));
}

}  // namespace
}  // namespace millrace
