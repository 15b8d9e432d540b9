// Manifests that are cut, damaged or made up: an error, or an answer that is right.
#include <algorithm>
#include <filesystem>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "dataset/frame_writer.h"
#include "dataset/manifest.h"
#include "dataset/manifest_cursor.h"
#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

#ifdef MILLRACE_SANITIZED
constexpr int kBitFlips = 30;
#else
constexpr int kBitFlips = 200;
#endif

// Everything that a manifest says, as text; "failed" where it fails.
std::vector<std::string> all_answers(const Manifest& manifest) {
  std::vector<std::string> answers;
  for (EntryIndex index = 0; index < manifest.entries(); ++index) {
    const auto entry = manifest.entry(index);
    if (!entry) {
      EXPECT_TRUE(entry.error() == StatusCode::kCorruption) << entry.error().to_string();
      answers.emplace_back("failed");
      continue;
    }
    std::string text =
        fmt::format("{} {} {} {} {}", int(entry->kind()), entry->mode().value_or(0xffff),
                    entry->mtime_ns(), entry->size(), entry->hash().to_text());
    const auto path = manifest.path_of(index);
    text += path ? *path : "failed";
    if (path) {
      const auto found = manifest.resolve(*path);
      text += !found || !*found ? "failed" : std::to_string(**found);
    }
    if (entry->kind() == EntryKind::kSymlink) {
      text += manifest.symlink_target(*entry).value_or("failed");
    }
    const auto children = manifest.children(*entry);
    text += children ? fmt::format("{}-{}", children->first, children->end) : "failed";
    const auto extents = manifest.extents(*entry);
    text += extents ? "" : "failed";
    for (const Extent& extent : extents.value_or(std::vector<Extent>{})) {
      text += fmt::format("{} {} {} ", extent.object, extent.offset, extent.logical_bytes);
      const auto object = manifest.object_of(*entry, extent);
      text += object ? object->key.value() + object->identity.value() + object->store : "failed";
      if (object && object->checksums) {
        text += fmt::format("{}", fmt::join(*object->checksums, " "));
      }
    }
    answers.push_back(text);
  }
  return answers;
}

class ManifestDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(build_tree(random_tree(5, 400), path));
    whole = read_bytes(path);
    right = all_answers(*Manifest::open(path).value());
  }
  Result<std::unique_ptr<Manifest>> open_damaged(const std::string& bytes) {
    // Another file, since the old one may be mapped.
    std::filesystem::remove(path);
    write_bytes(path, bytes);
    return Manifest::open(path);
  }

  ManifestFolder folder;
  std::string path = folder.file("m");
  std::string whole;
  std::vector<std::string> right;
};

TEST_F(ManifestDamageTest, AFlippedBitIsNoticedOrHasNoEffect) {
  std::mt19937_64 random(3);
  int refused = 0;
  int noticed = 0;
  for (int i = 0; i < kBitFlips; ++i) {
    // Much of a small manifest is zeros that fill pages up.
    std::size_t byte = random() % whole.size();
    while (i % 2 == 0 && whole[byte] == '\0')
      byte = random() % whole.size();
    const auto bit = static_cast<unsigned>(random() % 8);
    SCOPED_TRACE(fmt::format("byte {} bit {}", byte, bit));
    std::string damaged = whole;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << bit));
    const auto manifest = open_damaged(damaged);
    if (!manifest) {
      ++refused;
      EXPECT_TRUE(manifest.error() == StatusCode::kCorruption ||
                  manifest.error() == StatusCode::kUnsupported);
      EXPECT_NE(manifest.error().message().find(path), std::string::npos);
      continue;
    }
    const std::vector<std::string> answers = all_answers(**manifest);
    ASSERT_EQ(answers.size(), right.size());
    for (std::size_t entry = 0; entry < right.size(); ++entry) {
      if (answers[entry] == right[entry]) continue;
      ++noticed;
      EXPECT_NE(answers[entry].find("failed"), std::string::npos) << answers[entry];
    }
    const auto framed = write_frames(path, folder.file("frames"));
    EXPECT_FALSE(framed);
    EXPECT_FALSE(std::filesystem::exists(folder.file("frames")));
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(noticed, 0);
}

TEST_F(ManifestDamageTest, ACutFileIsRefused) {
  for (std::size_t pages = 0; pages < whole.size() / kManifestPageBytes; ++pages) {
    for (const std::size_t more : {std::size_t{0}, std::size_t{1}, std::size_t{4096}}) {
      const auto manifest = open_damaged(whole.substr(0, pages * kManifestPageBytes + more));
      ASSERT_FALSE(manifest);
      EXPECT_TRUE(manifest.error() == StatusCode::kCorruption) << manifest.error().to_string();
    }
  }
  EXPECT_FALSE(open_damaged(whole + std::string(kManifestPageBytes, '\0')));
  EXPECT_TRUE(open_damaged(whole));
}

TEST_F(ManifestDamageTest, AnotherFormatIsNamed) {
  std::string later = whole;
  later[8] = 9;
  const auto manifest = open_damaged(later);
  ASSERT_FALSE(manifest);
  EXPECT_TRUE(manifest.error() == StatusCode::kUnsupported);
  EXPECT_NE(manifest.error().message().find("format 9"), std::string::npos);
  EXPECT_TRUE(Manifest::open(folder.file("absent")).error() == StatusCode::kNotFound);
  write_bytes(folder.file("text"), std::string(kManifestPageBytes, 'x'));
  EXPECT_TRUE(Manifest::open(folder.file("text")).error() == StatusCode::kCorruption);
}

// Somebody who makes right checksums for wrong content: nothing crashes, no path leads outside.
TEST_F(ManifestDamageTest, ContentThatIsWrongUnderRightChecksumsIsHarmless) {
  std::mt19937_64 random(4);
  const auto pages = whole.size() / kManifestPageBytes;
  const std::uint64_t table = load_little_endian<std::uint64_t>(
      reinterpret_cast<const std::byte*>(whole.data()) + 152 + 8 * 8);
  for (int round = 0; round < kBitFlips / 2; ++round) {
    SCOPED_TRACE(round);
    std::string made_up = whole;
    auto* const bytes = reinterpret_cast<std::byte*>(made_up.data());
    for (std::uint64_t i = random() % 40 + 1; i > 0; --i) {
      const std::uint64_t at = kManifestPageBytes + random() % (table - kManifestPageBytes);
      bytes[at] = std::byte(random() % 3 == 0 ? 0xff : random());
    }
    for (std::uint64_t page = 1; page < table / kManifestPageBytes; ++page) {
      const ByteView content(bytes + page * kManifestPageBytes, kManifestPageBytes);
      store_little_endian(bytes + table + page * 4, crc32c(content));
    }
    store_little_endian(bytes + 72, crc32c(ByteView(bytes, whole.size()).subspan(table)));
    std::string header = made_up.substr(0, kManifestPageBytes);
    header.erase(12, 4);
    store_little_endian(bytes + 12, crc32c(as_bytes(header)));
    ASSERT_EQ(made_up.size(), pages * kManifestPageBytes);
    const auto manifest = open_damaged(made_up);
    ASSERT_TRUE(manifest) << manifest.error().to_string();
    (void)all_answers(**manifest);
    for (EntryIndex index = 0; index < (*manifest)->entries(); ++index) {
      const auto found = (*manifest)->path_of(index);
      if (found) {
        EXPECT_EQ(entry_path_fault(*found), std::nullopt);
      }
    }
  }
}

}  // namespace
}  // namespace millrace
