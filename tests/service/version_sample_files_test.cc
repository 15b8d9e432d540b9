#include "service/version_sample_files.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "tests/service/service_world.h"

namespace millrace {
namespace {

TEST(VersionSampleFilesTest, WhatIsExpectedIsFetchedOnceAndCountsAsNoRead) {
  constexpr std::size_t kShardBytes = 5 * kMiB;
  constexpr ByteRange kHead{0, 64 * kKiB};
  ServiceWorld world;
  const std::string content = publish_bytes(kShardBytes, 1);
  world.tree.write("shard.mds", content);
  ASSERT_TRUE(world.publish("a@v1"));
  const VersionRef ref = VersionRef::parse("a@v1").value();
  VersionSampleFiles files(
      world.versions()
          .of(world.context, world.registry.version(world.context, ref).value())
          .value());
  const EntryIndex file = files.manifest().resolve("shard.mds").value().value();
  world.recording->clear();

  files.expect(world.context, file, kHead);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (world.object_gets().requests == 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ(files.read(world.context, file, kHead).value().text(), content.substr(0, kHead.length));
  EXPECT_EQ(world.object_gets().requests, 1U);
  EXPECT_EQ(world.object_gets().bytes, kHead.length) << "nothing around it";

  const std::vector<UsageRow> rows = world.usage().rows();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].counts.reads, 1U);
  EXPECT_EQ(rows[0].counts.fetched_bytes, kHead.length) << "who expects it pays for it";
}

}  // namespace
}  // namespace millrace
