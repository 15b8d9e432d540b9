#include "dataset/tar_format.h"

#include <random>

#include <gtest/gtest.h>

#include "dataset/tar_reader.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

std::string header_of(const TarMember& member, TarTimes times = TarTimes::kNanoseconds) {
  const auto header = encode_tar_header(member, times);
  EXPECT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->size(), tar_header_bytes(member, times).value());
  EXPECT_EQ(header->size() % kTarBlockBytes, 0U);
  return *header;
}

std::string directories(std::size_t length) {
  std::string path;
  while (path.size() < length)
    path += path.size() % 50 == 48 ? '/' : 'd';
  return path;
}

TEST(TarFormat, IsTheBlockThatPosixDescribes) {
  const std::string header = header_of(
      {.path = "a/b.txt", .mode = 0640, .mtime_ns = 1'234'567'890'000'000'000, .size = 5});
  ASSERT_EQ(header.size(), kTarBlockBytes);
  std::string expected(512, '\0');
  const auto set = [&](std::size_t at, std::string_view text) {
    text.copy(&expected[at], 512 - at);
  };
  set(0, "a/b.txt");
  set(100, "0000640");
  set(108, "0000000");
  set(116, "0000000");
  set(124, "00000000005");
  set(136, "11145401322");
  set(156, "0");
  set(257, "ustar");
  set(263, "00root");
  set(297, "root");
  set(329, "0000000");
  set(337, "0000000");
  // Computed by GNU tar for the same fields.
  set(148, std::string_view("012236\0 ", 8));
  EXPECT_EQ(header, expected);
}

TEST(TarFormat, UsesPaxOnlyWhereItMust) {
  const auto blocks = [](const TarMember& member, TarTimes times = TarTimes::kNanoseconds) {
    return header_of(member, times).size() / kTarBlockBytes;
  };
  EXPECT_EQ(blocks({.path = std::string(100, 'n')}), 1U);
  EXPECT_EQ(blocks({.path = std::string(101, 'n')}), 3U);
  EXPECT_EQ(blocks({.path = std::string(155, 'p') + "/" + std::string(100, 'n')}), 1U);
  EXPECT_EQ(blocks({.path = std::string(156, 'p') + "/" + std::string(99, 'n')}), 3U);
  EXPECT_EQ(blocks({.path = std::string(99, 'p'), .kind = TarKind::kDirectory}), 1U);
  EXPECT_EQ(blocks({.path = std::string(100, 'p'), .kind = TarKind::kDirectory}), 3U);
  EXPECT_EQ(blocks({.path = "\xff"}), 1U);
  EXPECT_EQ(blocks({.path = "x", .size = (8ULL << 30) - 1}), 1U);
  EXPECT_EQ(blocks({.path = "x", .size = 8ULL << 30}), 3U);
  EXPECT_EQ(blocks({.path = "x", .mtime_ns = 1'500'000'000}), 3U);
  EXPECT_EQ(blocks({.path = "x", .mtime_ns = 1'500'000'000}, TarTimes::kSeconds), 1U);
  EXPECT_EQ(blocks({.path = "x", .mtime_ns = -1}), 3U);
  EXPECT_EQ(blocks({.path = "x", .mtime_ns = -1}, TarTimes::kSeconds), 3U);
  EXPECT_EQ(blocks({.path = "x", .mtime_ns = INT64_MAX}, TarTimes::kSeconds), 3U);
  EXPECT_EQ(blocks({.path = "l", .kind = TarKind::kSymlink, .link_target = std::string(100, 't')}),
            1U);
  EXPECT_EQ(blocks({.path = "l", .kind = TarKind::kSymlink, .link_target = std::string(101, 't')}),
            3U);
  // Records that do not fit into one block.
  EXPECT_EQ(blocks({.path = directories(600)}), 4U);
}

TEST(TarFormat, NamesThatAreNotUtf8AreMarked) {
  const std::string plain = header_of({.path = std::string(200, 'a')});
  EXPECT_EQ(plain.find("hdrcharset"), std::string::npos);
  const std::string odd = header_of({.path = std::string(200, '\xff')});
  EXPECT_NE(odd.find("21 hdrcharset=BINARY\n"), std::string::npos);
}

TEST(TarFormat, RecordsCountTheirOwnLength) {
  // The length of the record passes 99 and 999, where its digits become one more.
  for (std::size_t length = 101; length < 1100; ++length) {
    const TarMember member{.path = std::string(length, 'n')};
    const auto members = list_archive(archive_of({{member, ""}}));
    ASSERT_EQ(members.size(), 1U);
    ASSERT_EQ(members[0].member, member);
  }
}

TEST(TarFormat, RefusesWhatNoTarCanHold) {
  for (const TarMember& bad : {
           TarMember{.path = ""},
           TarMember{.path = "/a"},
           TarMember{.path = "a/"},
           TarMember{.path = std::string("a\0b", 3)},
           TarMember{.path = std::string(kTarPathBytesMax, 'a')},
           TarMember{.path = "a", .kind = TarKind::kHardLink, .link_target = "b"},
           TarMember{.path = "a", .kind = TarKind::kOther},
           TarMember{.path = "a", .kind = TarKind::kSymlink},
           TarMember{.path = "a", .link_target = "b"},
           TarMember{.path = "a", .kind = TarKind::kDirectory, .size = 1},
           TarMember{.path = "a", .size = UINT64_MAX},
       }) {
    EXPECT_EQ(encode_tar_header(bad, TarTimes::kSeconds).error().code(),
              StatusCode::kInvalidArgument);
    EXPECT_FALSE(tar_header_bytes(bad, TarTimes::kSeconds));
  }
}

TEST(TarFormat, ReaderFindsWhatWriterWrote) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::vector<ArchiveMember> members;
    const std::size_t count = random() % 20;
    for (std::size_t n = 0; n < count; ++n)
      members.push_back(random_archive_member(random));
    const std::string archive = archive_of(members);
    const auto found = list_archive(archive);
    ASSERT_EQ(found.size(), members.size());
    for (std::size_t n = 0; n < count; ++n) {
      EXPECT_EQ(found[n].member, members[n].member);
      EXPECT_EQ(archive.substr(found[n].content_offset, found[n].member.size), members[n].content);
    }
  }
}

TEST(TarFormat, ReaderFindsLargeSizesAndTimes) {
  for (const TarMember& member :
       {TarMember{.path = "large", .size = 1ULL << 50},
        TarMember{.path = "edge", .size = 8ULL << 30},
        TarMember{.path = "first", .mtime_ns = -1'500'000'001},
        TarMember{.path = "last", .mtime_ns = 9'223'372'034'999'999'999}}) {
    const std::string header = header_of(member);
    TarReader reader(reading(header), header.size() + tar_padded(member.size) + kTarEndBytes);
    const auto found = reader.next();
    ASSERT_TRUE(found) << found.error().to_string();
    EXPECT_EQ((*found)->member, member);
  }
}

}  // namespace
}  // namespace millrace
