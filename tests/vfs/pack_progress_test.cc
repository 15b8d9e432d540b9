#include "vfs/pack_progress.h"

#include <algorithm>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

constexpr std::uint64_t kPackBytes = 64 * kMiB;

// The files of a pack, behind their tar headers.
std::vector<ByteRange> files_of_pack(std::uint64_t file_bytes, std::uint64_t pack_bytes) {
  std::vector<ByteRange> files;
  for (std::uint64_t at = 512; at + file_bytes <= pack_bytes; at += file_bytes + 512)
    files.push_back({at, file_bytes});
  return files;
}

// What was expected in all, and after how many bytes first; 0 when nothing was.
struct Expected {
  std::uint64_t times = 0;
  std::uint64_t bytes = 0;
  std::uint64_t after_bytes = 0;
};

Expected read_all(PackProgress& progress, const std::vector<ByteRange>& files,
                  std::uint64_t pack_bytes = kPackBytes) {
  Expected expected;
  std::uint64_t read_bytes = 0;
  for (const ByteRange file : files) {
    read_bytes += file.length;
    const std::uint64_t bytes = progress.note_read(file, pack_bytes);
    if (bytes == 0) continue;
    if (expected.times++ == 0) expected.after_bytes = read_bytes;
    expected.bytes += bytes;
  }
  return expected;
}

void shuffle_within(std::vector<ByteRange>& files, std::size_t distance, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (std::size_t at = 0; at < files.size(); at += distance) {
    std::shuffle(files.begin() + static_cast<std::ptrdiff_t>(at),
                 files.begin() + static_cast<std::ptrdiff_t>(std::min(at + distance, files.size())),
                 random);
  }
}

TEST(PackProgress, ExpectsTheNextPackOnceWhenAnEighthWasReadInOrder) {
  for (const std::uint64_t file_bytes : {4 * kKiB, 110 * kKiB, kMiB}) {
    PackProgress progress;
    const Expected expected = read_all(progress, files_of_pack(file_bytes, kPackBytes));
    EXPECT_EQ(expected.times, 1u) << file_bytes;
    EXPECT_GE(expected.after_bytes, kPackBytes / 8);
    EXPECT_LT(expected.after_bytes, kPackBytes / 8 + 2 * file_bytes);
    EXPECT_GE(expected.bytes, kPackBytes);
    EXPECT_LE(expected.bytes, 8 * expected.after_bytes);
  }
}

TEST(PackProgress, ReadersWhoShareTheFilesAreInOrder) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::vector<ByteRange> files = files_of_pack(110 * kKiB, kPackBytes);
    shuffle_within(files, 8, seed);
    PackProgress progress;
    const Expected expected = read_all(progress, files);
    EXPECT_EQ(expected.times, 1u) << seed;
    EXPECT_LT(expected.after_bytes, kPackBytes / 4) << seed;
  }
}

TEST(PackProgress, FilesInNoOrderCauseNothing) {
  for (const std::uint64_t file_bytes : {4 * kKiB, 110 * kKiB, kMiB}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      std::vector<ByteRange> files = files_of_pack(file_bytes, kPackBytes);
      shuffle_within(files, files.size(), seed);
      PackProgress progress;
      EXPECT_EQ(read_all(progress, files).times, 0u) << file_bytes << " bytes, seed " << seed;
    }
  }
}

TEST(PackProgress, AFewFilesCauseNothing) {
  std::vector<ByteRange> files = files_of_pack(110 * kKiB, kPackBytes);
  files.resize(files.size() / 10);
  PackProgress progress;
  EXPECT_EQ(read_all(progress, files).times, 0u) << "in order";
  PackProgress small;
  EXPECT_EQ(small.note_read({512, 200 * kKiB}, 300 * kKiB), 0u) << "most of a small pack";
}

TEST(PackProgress, WhoEntersAPackInItsMiddleCausesNothing) {
  std::vector<ByteRange> files = files_of_pack(110 * kKiB, kPackBytes);
  files.erase(files.begin(), files.begin() + static_cast<std::ptrdiff_t>(files.size() / 2));
  PackProgress progress;
  EXPECT_EQ(read_all(progress, files).times, 0u);
}

TEST(PackProgress, AnotherPassExpectsAgain) {
  const std::vector<ByteRange> files = files_of_pack(110 * kKiB, kPackBytes);
  PackProgress progress;
  EXPECT_EQ(read_all(progress, files).times, 1u);
  EXPECT_EQ(read_all(progress, files).times, 1u);
}

TEST(PackProgress, AnOrderIsSeenBehindReadsInNone) {
  const std::vector<ByteRange> files = files_of_pack(110 * kKiB, kPackBytes);
  PackProgress progress;
  for (std::size_t n = 0; n < 10; ++n)
    EXPECT_EQ(progress.note_read(files[(n * 199 + 300) % files.size()], kPackBytes), 0u);
  EXPECT_EQ(read_all(progress, files).times, 1u);
}

}  // namespace
}  // namespace millrace
