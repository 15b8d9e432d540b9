// Small files read through the tree: the next pack is fetched before its first file is asked for,
// and nobody fetches what he does not want.
#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dataset/publish_uploads.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

constexpr std::uint64_t kSmallPackBytes = 8 * kMiB;
constexpr std::uint64_t kSmallFileBytes = 60 * kKiB;
constexpr std::uint64_t kPacks = 3;

class ExpectedPacksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::uint64_t files = kPacks * kSmallPackBytes / (kSmallFileBytes + kKiB);
    for (std::uint64_t n = 0; n < files; ++n)
      world.tree.write(fmt::format("{:06}", n), publish_bytes(kSmallFileBytes, n));
    PublishOptions options = world.options();
    options.packs.target_bytes = kSmallPackBytes;
    ASSERT_TRUE(world.publish("d@v1", options));
    const NodeNumber root = world.at("datasets/d/v1").number;
    for (std::uint64_t n = 0; n < files; ++n)
      files_.push_back(world.files().lookup(world.context, root, fmt::format("{:06}", n))->number);
    for (const std::string& key : world.keys("d/"))
      if (is_pack_key(key)) packs_.push_back(key);
    ASSERT_EQ(packs_.size(), kPacks);
  }

  void read(const std::vector<NodeNumber>& files) {
    for (const NodeNumber file : files)
      ASSERT_EQ(world.VfsWorld::read(file, {0, kSmallFileBytes})->size(), kSmallFileBytes);
  }
  std::uint64_t fetched_bytes(const std::string& key) const {
    std::uint64_t bytes = 0;
    for (const RecordedRequest& request : world.recording->requests()) {
      if (request.operation == StoreOperation::kGetRange && request.key == key)
        bytes += request.range->length;
    }
    return bytes;
  }
  std::uint64_t fetched_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::string& pack : packs_)
      bytes += fetched_bytes(pack);
    return bytes;
  }
  std::uint64_t stored_bytes(const std::string& key) const {
    return world.memory->head(world.context, ObjectKey(key))->size;
  }
  void wait_for_fetch(const std::string& key) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (fetched_bytes(key) < stored_bytes(key) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }

  VfsWorld world;
  std::vector<NodeNumber> files_;
  std::vector<std::string> packs_;
};

TEST_F(ExpectedPacksTest, TheNextPackComesBeforeItsFirstFileIsRead) {
  const std::size_t per_pack = files_.size() / kPacks;
  read({files_.begin(), files_.begin() + static_cast<std::ptrdiff_t>(per_pack / 2)});
  wait_for_fetch(packs_[1]);
  EXPECT_EQ(fetched_bytes(packs_[1]), stored_bytes(packs_[1]));
  EXPECT_EQ(fetched_bytes(packs_[2]), 0u) << "one pack ahead at most";
}

TEST_F(ExpectedPacksTest, WhoReadsInOrderFetchesEachByteOnce) {
  read(files_);
  for (const std::string& pack : packs_)
    EXPECT_LE(fetched_bytes(pack), stored_bytes(pack)) << pack;
}

TEST_F(ExpectedPacksTest, WhoReadsAllInNoOrderFetchesLittleMoreThanThat) {
  std::mt19937_64 random(3);
  std::vector<NodeNumber> shuffled = files_;
  std::ranges::shuffle(shuffled, random);
  read(shuffled);
  EXPECT_LE(static_cast<double>(fetched_bytes()),
            1.05 * static_cast<double>(files_.size() * kSmallFileBytes));
}

TEST_F(ExpectedPacksTest, WhoHasAPlanGetsWhatHeAsksForAlone) {
  constexpr std::uint64_t kAsked = 60;
  for (std::uint64_t n = 0; n < kAsked; ++n) {
    const auto opened = world.files().open(world.context, files_[2 * n]).value();
    Waiter<Slice> waiter;
    opened->read(world.context.with_plan(), {0, kSmallFileBytes}, waiter.completion());
    ASSERT_EQ(waiter.wait()->size(), kSmallFileBytes);
  }
  for (const RecordedRequest& request : world.recording->requests()) {
    if (request.operation != StoreOperation::kGetRange || request.key != packs_[0]) continue;
    EXPECT_LE(request.range->length, 2 * kUnitBytes) << "the units that the file lies in";
  }
  EXPECT_LE(fetched_bytes(packs_[0]), kAsked * 2 * kUnitBytes);
  EXPECT_EQ(fetched_bytes(packs_[1]), 0u);
}

TEST_F(ExpectedPacksTest, WhoReadsSomeFilesOfAPackDoesNotGetTheNext) {
  const std::size_t per_pack = files_.size() / kPacks;
  std::mt19937_64 random(3);
  std::vector<NodeNumber> some(files_.begin(),
                               files_.begin() + static_cast<std::ptrdiff_t>(per_pack - 1));
  std::ranges::shuffle(some, random);
  read(some);
  EXPECT_EQ(fetched_bytes(packs_[1]), 0u);
  EXPECT_EQ(fetched_bytes(packs_[2]), 0u);
}

}  // namespace
}  // namespace millrace
