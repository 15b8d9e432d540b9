#include "dataset/tar_reader.h"

#include <random>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/tar_header.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// Puts the right checksum into a header block.
void seal_header(std::string& archive, std::size_t at = 0) {
  archive.replace(at + kTarChecksumField.offset, 8, 8, ' ');
  unsigned sum = 0;
  for (std::size_t n = 0; n < kTarBlockBytes; ++n)
    sum += static_cast<unsigned char>(archive[at + n]);
  const std::string digits = fmt::format("{:06o}", sum);
  archive.replace(at + kTarChecksumField.offset, 6, digits);
  archive[at + kTarChecksumField.offset + 6] = '\0';
}

std::string one_block(std::string_view name, char type, std::string_view content = {}) {
  std::string archive =
      encode_tar_header({.path = std::string(name), .size = content.size()}, TarTimes::kSeconds)
          .value();
  archive[kTarTypeField.offset] = type;
  seal_header(archive);
  archive += content;
  archive.resize(tar_padded(archive.size()), '\0');
  return archive;
}

std::string pax(std::string_view records, char type = 'x') {
  return one_block("PaxHeaders/x", type, records);
}

Status failure_of(std::string_view archive) {
  const auto members = try_list_archive(archive);
  return members ? Status() : members.error();
}

TEST(TarReader, EndsWhereTheArchiveDoes) {
  const std::string whole = archive_of({{{.path = "a", .size = 3}, "abc"}});
  TarReader reader(reading(whole), whole.size());
  EXPECT_EQ(reader.next().value()->member.path, "a");
  EXPECT_FALSE(reader.next().value());
  EXPECT_FALSE(reader.next().value());
  EXPECT_TRUE(reader.has_end_marker());

  // Without the marker, and without the zeros that fill the last block: nothing is missing.
  for (const std::size_t cut : {kTarEndBytes, kTarEndBytes + 509}) {
    const std::string_view part = std::string_view(whole).substr(0, whole.size() - cut);
    TarReader open_end(reading(part), part.size());
    EXPECT_EQ(open_end.next().value()->member.path, "a");
    EXPECT_FALSE(open_end.next().value());
    EXPECT_FALSE(open_end.has_end_marker());
  }
  EXPECT_TRUE(list_archive("").empty());
  // What comes behind the marker is no member.
  EXPECT_EQ(list_archive(whole + whole).size(), 1U);
}

TEST(TarReader, EveryCutIsNoticedOrHarmless) {
  const std::string whole =
      archive_of({{{.path = std::string(300, 'n'), .size = 600}, std::string(600, 'x')},
                  {{.path = "b", .size = 3}, "abc"}});
  const std::size_t first_end = 512 + 512 + 512 + 600;
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto members = try_list_archive(std::string_view(whole).substr(0, length));
    if (!members) {
      ASSERT_EQ(members.error().code(), StatusCode::kCorruption) << length;
      continue;
    }
    ASSERT_TRUE(members->empty() ? length == 0 : length >= first_end) << length;
  }
}

TEST(TarReader, ReadsAStreamOfUnknownLength) {
  const std::string whole = archive_of({{{.path = "a", .size = 700}, std::string(700, 'x')}});
  std::uint64_t reached = 0;
  TarReader reader(
      [&](std::uint64_t offset, MutableByteView into) {
        EXPECT_GE(offset, reached);
        reached = offset + into.size();
        return reading(whole)(offset, into);
      },
      kTarUnknownBytes);
  EXPECT_TRUE(reader.next().value());
  EXPECT_FALSE(reader.next().value());
  TarReader empty(reading(""), kTarUnknownBytes);
  EXPECT_FALSE(empty.next().value());
}

TEST(TarReader, NoFlippedBitOfAHeaderPasses) {
  const std::string whole = archive_of({{{.path = "name", .mode = 0644, .size = 3}, "abc"}});
  for (std::size_t bit = 0; bit < kTarBlockBytes * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const auto members = try_list_archive(damaged);
    if (members) {
      // Of the checksum itself some bits mean nothing, such as which byte ends its digits.
      ASSERT_EQ(members->size(), 1U) << bit;
      ASSERT_EQ((*members)[0].member.path, "name") << bit;
      ASSERT_GE(bit / 8, kTarChecksumField.offset) << bit;
      ASSERT_LT(bit / 8, kTarChecksumField.offset + 8) << bit;
    } else {
      ASSERT_EQ(members.error().code(), StatusCode::kCorruption) << bit;
      ASSERT_THAT(members.error().message(), HasSubstr("at byte 0")) << bit;
    }
  }
}

TEST(TarReader, AFailureStays) {
  std::string bad = archive_of({{{.path = "a"}, ""}});
  bad[0] = 'b';
  TarReader reader(reading(bad), bad.size());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.next().error().code(), StatusCode::kCorruption);

  TarReader broken(
      [](std::uint64_t, MutableByteView) -> Result<std::size_t> {
        return failure(StatusCode::kUnavailable, "gone");
      },
      1024);
  EXPECT_EQ(broken.next().error().code(), StatusCode::kUnavailable);
}

std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  const std::size_t digits = rest + 1 > 9 ? 2 : 1;
  return fmt::format("{} {}={}\n", rest + digits, key, value);
}

TEST(TarReader, PaxRecordsRuleTheNextMemberOnly) {
  const std::string archive =
      pax(pax_record("path", "other") + pax_record("mtime", "-1.5") + pax_record("size", "3") +
          pax_record("comment", "x=y") + pax_record("SCHILY.xattr.user.a", "b")) +
      one_block("first", '0', "abc") + one_block("second", '0');
  const auto members = list_archive(archive);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].member.path, "other");
  EXPECT_EQ(members[0].member.mtime_ns, -1'500'000'000);
  EXPECT_EQ(members[0].member.size, 3U);
  EXPECT_EQ(members[0].header_offset, 0U);
  EXPECT_EQ(members[0].content_offset, 1536U);
  EXPECT_EQ(members[1].member.path, "second");
  EXPECT_EQ(members[1].header_offset, 2048U);
}

TEST(TarReader, GlobalRecordsStayUntilTakenBack) {
  const std::string archive = pax(pax_record("mtime", "7"), 'g') + one_block("a", '0') +
                              pax(pax_record("mtime", "8")) + one_block("b", '0') +
                              one_block("c", '0') + pax(pax_record("mtime", ""), 'g') +
                              one_block("d", '0');
  const auto members = list_archive(archive);
  ASSERT_EQ(members.size(), 4U);
  const auto seconds = [&](int n) { return members[n].member.mtime_ns / 1'000'000'000; };
  EXPECT_EQ(seconds(0), 7);
  EXPECT_EQ(seconds(1), 8);
  EXPECT_EQ(seconds(2), 7);
  EXPECT_EQ(seconds(3), 0);
  // As git makes it of an empty tree.
  EXPECT_TRUE(list_archive(pax(pax_record("comment", "x"), 'g')).empty());
}

TEST(TarReader, RefusesDamagedPaxRecords) {
  const std::string member = one_block("a", '0');
  for (const std::string& records :
       {std::string("x"), std::string("5 a=b"), std::string("99 a=b\n"), std::string("3 =\n"),
        std::string("0 a=b\n"), std::string("-6 a=b\n"), std::string("6 a b\n"),
        std::string("6 a=b\n7"), std::string("6\0a=b\n", 6),
        std::string("18446744073709551622 a=b\n"), pax_record("size", "-1"),
        pax_record("size", "1x"), pax_record("size", "99999999999999999999"),
        pax_record("size", "9999999999999999999"), pax_record("mtime", "x"),
        pax_record("mtime", "1.x"), pax_record("mtime", "."),
        pax_record("path", std::string_view("a\0b", 3))}) {
    const Status status = failure_of(pax(records) + member);
    EXPECT_EQ(status.code(), StatusCode::kCorruption) << records;
    EXPECT_THAT(status.message(), HasSubstr("byte 0")) << records;
  }
  EXPECT_EQ(failure_of(pax(pax_record("mtime", "1"))).code(), StatusCode::kCorruption);
  EXPECT_EQ(failure_of(pax(pax_record("mtime", "1")) + std::string(1024, '\0')).code(),
            StatusCode::kCorruption);
  // More than the archive has.
  EXPECT_EQ(failure_of(pax(pax_record("size", "1000")) + member).code(), StatusCode::kCorruption);
}

TEST(TarReader, RefusesWhatItCannotRead) {
  EXPECT_EQ(failure_of(one_block("a", 'S')).code(), StatusCode::kUnsupported);
  EXPECT_EQ(failure_of(one_block("a", 'M')).code(), StatusCode::kUnsupported);
  for (const char* key : {"GNU.sparse.major", "GNU.sparse.size", "GNU.sparse.map"}) {
    const Status status = failure_of(pax(pax_record(key, "1")) + one_block("a", '0'));
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("sparse"));
  }
  EXPECT_EQ(failure_of(one_block("a", 'L', std::string(5000, 'n')) + one_block("a", '0')).code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(failure_of(one_block("a", 'x', std::string(2 * kMiB, 'n'))).code(),
            StatusCode::kUnsupported);
  std::string many;
  for (int n = 0; n < 17; ++n)
    many += pax(pax_record("a", "b"));
  EXPECT_EQ(failure_of(many + one_block("a", '0')).code(), StatusCode::kCorruption);
}

TEST(TarReader, ReadsGnuLongNames) {
  const std::string name(1000, 'n');
  const std::string target(2000, 't');
  const std::string archive = one_block("././@LongLink", 'L', name + '\0') +
                              one_block("././@LongLink", 'K', target + '\0') +
                              one_block(name.substr(0, 100), '2') + one_block("next", '0');
  const auto members = list_archive(archive);
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].member.path, name);
  EXPECT_EQ(members[0].member.link_target, target);
  EXPECT_EQ(members[0].member.kind, TarKind::kSymlink);
  EXPECT_EQ(members[1].member.path, "next");
}

TEST(TarReader, ReadsBinaryNumbers) {
  const auto size_of = [](std::string_view field) {
    std::string archive = one_block("a", '0');
    archive.replace(kTarSizeField.offset, field.size(), field);
    seal_header(archive);
    TarReader reader(reading(archive), kTarUnknownBytes);
    const auto member = reader.next();
    return member ? (*member)->member.size : UINT64_MAX;
  };
  EXPECT_EQ(size_of(std::string_view("\x80\0\0\0\0\0\0\2\0\0\0\1", 12)), (2ULL << 32) + 1);
  EXPECT_EQ(size_of(std::string_view("\x80\0\0\0\x3f\0\0\0\0\0\0\0", 12)), 0x3fULL << 56);
  EXPECT_EQ(size_of(std::string_view("\x80\0\0\0\x7f\0\0\0\0\0\0\0", 12)), UINT64_MAX);
  EXPECT_EQ(size_of(std::string_view("\x80\0\0\1\0\0\0\0\0\0\0\0", 12)), UINT64_MAX);
  EXPECT_EQ(size_of(std::string_view("\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12)),
            UINT64_MAX);
  EXPECT_EQ(size_of("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), UINT64_MAX);
  EXPECT_EQ(size_of("777777777777"), (1ULL << 36) - 1);
  EXPECT_EQ(size_of("        17  "), 15U);
  EXPECT_EQ(size_of("      1 7   "), UINT64_MAX);
  EXPECT_EQ(size_of("00000000008 "), UINT64_MAX);

  std::string early = one_block("a", '0');
  early.replace(kTarTimeField.offset, 12, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe");
  seal_header(early);
  EXPECT_EQ(list_archive(early)[0].member.mtime_ns, -2'000'000'000);
}

TEST(TarReader, KnowsTheKindsOfMembers) {
  const auto kind_of_type = [](std::string_view name, char type) {
    return list_archive(one_block(name, type) + one_block("next", '0'))[0].member.kind;
  };
  EXPECT_EQ(kind_of_type("a", '\0'), TarKind::kFile);
  EXPECT_EQ(kind_of_type("a", '7'), TarKind::kFile);
  EXPECT_EQ(kind_of_type("a", '1'), TarKind::kHardLink);
  EXPECT_EQ(kind_of_type("a", '5'), TarKind::kDirectory);
  for (const char other : {'3', '4', '6', 'D', 'V', 'Z'})
    EXPECT_EQ(kind_of_type("a", other), TarKind::kOther);
  // An old directory, as a file with '/' at the end.
  std::string old = one_block("abc", '\0');
  old[3] = '/';
  seal_header(old);
  EXPECT_EQ(list_archive(old)[0].member.kind, TarKind::kDirectory);
  EXPECT_EQ(list_archive(old)[0].member.path, "abc");
  // A directory has no content, whatever its size says; an unknown kind has.
  std::string sized = one_block("d", '5');
  sized.replace(kTarSizeField.offset, 11, "00000010000");
  seal_header(sized);
  EXPECT_EQ(list_archive(sized + one_block("next", '0')).size(), 2U);
  EXPECT_EQ(list_archive(one_block("d", 'Z', "content") + one_block("next", '0')).size(), 2U);
}

TEST(TarReader, NoDamageDoesHarm) {
  std::mt19937_64 random(5);
  std::vector<ArchiveMember> members;
  for (int n = 0; n < 12; ++n)
    members.push_back(random_archive_member(random));
  const std::string whole = archive_of(members);
  for (int round = 0; round < 4000; ++round) {
    SCOPED_TRACE(round);
    std::string damaged = whole;
    for (std::uint64_t n = 0; n <= random() % 4; ++n) {
      const std::size_t at = random() % damaged.size();
      damaged[at] = static_cast<char>(random());
      // Half of them with a right checksum, so that the fields behind it are reached.
      if (random() % 2 == 0) seal_header(damaged, at / kTarBlockBytes * kTarBlockBytes);
    }
    const auto found = try_list_archive(damaged);
    if (!found) {
      ASSERT_TRUE(found.error().code() == StatusCode::kCorruption ||
                  found.error().code() == StatusCode::kUnsupported);
      continue;
    }
    for (const TarReadMember& member : *found) {
      ASSERT_LE(member.content_offset + member.member.size, damaged.size());
      ASSERT_LT(member.header_offset, member.content_offset);
      ASSERT_FALSE(member.member.path.empty());
    }
  }
}

}  // namespace
}  // namespace millrace
