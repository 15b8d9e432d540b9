// Tar shards without an index: their samples are counted on first use, once.

#include "service/sample_counting.h"

#include <atomic>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/mutex.h"
#include "dataset/sample_index_store.h"
#include "loader/store_sample_files.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// Files that are read only once the test lets them be.
class HeldBackFiles final : public SampleFiles {
 public:
  explicit HeldBackFiles(SampleFiles& files) : files_(files) {}
  const Manifest& manifest() const override { return files_.manifest(); }
  Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) override {
    {
      MutexLock lock(mutex_);
      while (held_)
        changed_.wait(mutex_);
    }
    bytes += range.length;
    return files_.read(context, file, range);
  }
  void hold(bool held) {
    MutexLock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  std::atomic<std::uint64_t> bytes = 0;

 private:
  SampleFiles& files_;
  Mutex mutex_;
  CondVar changed_;
  bool held_ MR_GUARDED_BY(mutex_) = false;
};

class SampleCountingTest : public ::testing::Test {
 protected:
  SampleCountingTest() {
    for (int shard = 0; shard < kShards; ++shard) {
      std::vector<ArchiveMember> members;
      for (int n = 0; n < kShardSamples; ++n) {
        const std::string content(3000, 'x');
        for (const char* field : {"jpg", "cls"}) {
          members.push_back(
              {.member = {.path = fmt::format("{:04}.{}", n, field), .size = content.size()},
               .content = content});
        }
      }
      // Its content need not be read to find the sample behind it.
      const std::string large(4 * kMiB, 'y');
      members.push_back({.member = {.path = "large.bin", .size = large.size()}, .content = large});
      members.push_back({.member = {.path = "last.txt", .size = 1}, .content = "z"});
      world.tree.write(fmt::format("{}.tar", shard), archive_of(members));
    }
    EXPECT_TRUE(world.publish("shards@v1"));
    manifest = world.manifest("shards@v1");
    reader = std::make_unique<VersionReader>(*world.memory, *manifest, ref_of("shards@v1"));
    direct = std::make_unique<StoreSampleFiles>(*reader);
    files = std::make_shared<HeldBackFiles>(*direct);
  }
  std::unique_ptr<SampleCounting> counting() {
    auto own = std::make_unique<MemoryObjectStore>();
    indexes = own.get();
    return std::make_unique<SampleCounting>(SampleCounting::Parts{
        .indexes = std::move(own), .clock = system_clock(), .scratch = scratch.path("listings")});
  }
  bool has_index(ObjectStore& store) {
    return SampleIndexStore(store).open(world.context, manifest->content_digest()).has_value();
  }

  static constexpr int kShards = 5;
  static constexpr int kShardSamples = 40;
  static constexpr std::uint64_t kSamples = kShards * (kShardSamples + 2);

  const LogCapture quiet;
  const ScratchTree scratch;
  PublishWorld world;
  std::unique_ptr<Manifest> manifest;
  std::unique_ptr<VersionReader> reader;
  std::unique_ptr<StoreSampleFiles> direct;
  std::shared_ptr<HeldBackFiles> files;
  ObjectStore* indexes = nullptr;
};

TEST_F(SampleCountingTest, CountsOnceAndKeepsTheIndexHere) {
  const auto counted = counting();
  const auto index = counted->open(world.context, files, {.name = "/data"});
  ASSERT_TRUE(index) << index.error().to_string();
  EXPECT_EQ((*index)->samples(), kSamples);
  EXPECT_LT(files->bytes, kShards * kMiB) << "the content of large members is passed over";
  const std::uint64_t bytes = files->bytes;
  const auto again = counted->open(world.context, files, {.name = "/data"});
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->samples(), kSamples);
  EXPECT_EQ(files->bytes, bytes);
  EXPECT_TRUE(has_index(*indexes));
  EXPECT_FALSE(has_index(*world.memory));
}

TEST_F(SampleCountingTest, OthersFindTheIndexOfAVersion) {
  const auto counted = counting();
  const auto index =
      counted->open(world.context, files, {.name = "shards@v1", .shared = world.memory.get()});
  ASSERT_TRUE(index) << index.error().to_string();
  EXPECT_EQ((*index)->samples(), kSamples);
  EXPECT_TRUE(has_index(*world.memory));
  EXPECT_FALSE(has_index(*indexes));
}

TEST_F(SampleCountingTest, GoesOnWhenNobodyWaitsAnyMore) {
  const auto counted = counting();
  files->hold(true);
  const RequestContext soon =
      world.context.with_deadline(system_clock().now() + std::chrono::milliseconds(50));
  const auto late = counted->open(soon, files, {.name = "/data"});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_THAT(late.error().message(), HasSubstr("tar files of /data are being counted"));
  std::vector<std::thread> waiting;
  for (int n = 0; n < 4; ++n) {
    waiting.emplace_back([&] {
      const auto index = counted->open(world.context, files, {.name = "/data"});
      EXPECT_TRUE(index && (*index)->samples() == kSamples);
    });
  }
  files->hold(false);
  for (std::thread& each : waiting)
    each.join();
  EXPECT_LT(files->bytes, kShards * kMiB) << "it is counted once for all";
}

TEST_F(SampleCountingTest, EndsWithItsOwner) {
  auto counted = counting();
  files->hold(true);
  const RequestContext soon =
      world.context.with_deadline(system_clock().now() + std::chrono::milliseconds(10));
  EXPECT_FALSE(counted->open(soon, files, {.name = "/data"}));
  std::thread ending([&] { counted.reset(); });
  files->hold(false);
  ending.join();
}

}  // namespace
}  // namespace millrace
