#include "cache/object_table.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

ObjectVersion table_version(int n) { return stored_version("t" + std::to_string(n), 2 * kMiB); }

TEST(ObjectTable, HasOneObjectPerVersion) {
  ObjectTable table({}, 1000);
  EXPECT_EQ(table.find(table_version(1).digest()), nullptr);
  const auto object = table.find_or_add(table_version(1));
  EXPECT_EQ(table.find_or_add(table_version(1)), object);
  EXPECT_EQ(table.find(table_version(1).digest()), object);
  EXPECT_NE(table.find_or_add(table_version(2)), object);
  EXPECT_EQ(table.size(), 2u);
}

TEST(ObjectTable, ADetachedObjectIsReplacedAndLivesOn) {
  ObjectTable table({}, 1000);
  const auto old = table.find_or_add(table_version(1));
  table.detach(*old);
  EXPECT_EQ(table.find(table_version(1).digest()), nullptr);
  const auto fresh = table.find_or_add(table_version(1));
  EXPECT_NE(fresh, old);
  table.detach(*old);
  EXPECT_EQ(table.find(table_version(1).digest()), fresh) << "only the object itself is taken out";
}

TEST(ObjectTable, IdleObjectsGoAndThoseInUseStay) {
  constexpr std::size_t kMax = 640;
  ObjectTable table({}, kMax);
  std::vector<std::shared_ptr<CachedObject>> used;
  for (int n = 0; n < 200; ++n)
    used.push_back(table.find_or_add(table_version(n)));
  for (int n = 200; n < 20'000; ++n)
    table.find_or_add(table_version(n));
  // A shard with more than its share in use goes above its limit.
  EXPECT_LE(table.size(), kMax + 64 + 200);
  EXPECT_GT(table.size(), kMax / 2);
  for (int n = 0; n < 200; ++n)
    EXPECT_EQ(table.find(table_version(n).digest()), used[static_cast<std::size_t>(n)]);
}

TEST(ObjectTable, OfLargeOnesFewerStayWhereverTheyAre) {
  constexpr std::size_t kLargeMax = 20;
  ObjectTable table({}, 10'000, kLargeMax);
  const auto small = [](int n) { return stored_version("s" + std::to_string(n), 100 * kKiB); };
  for (int n = 0; n < 1000; ++n)
    table.find_or_add(small(n));
  std::vector<std::shared_ptr<CachedObject>> used;
  for (int n = 0; n < 10; ++n)
    used.push_back(table.find_or_add(table_version(n)));
  for (int n = 10; n < 500; ++n) {
    table.find_or_add(table_version(n));
    ASSERT_LE(table.size(), 1000 + kLargeMax);
  }
  EXPECT_GT(table.size(), 1000 + kLargeMax / 2);
  EXPECT_TRUE(table.has_room_for_large());
  for (int n = 500; n < 520; ++n)
    used.push_back(table.find_or_add(table_version(n)));
  EXPECT_FALSE(table.has_room_for_large()) << "those in use stay";
  used.clear();
  EXPECT_TRUE(table.has_room_for_large()) << "once nobody uses them, without another one";
  table.find_or_add(table_version(1000));
  for (int n = 1001; n < 1100; ++n)
    table.find_or_add(table_version(n));
  EXPECT_TRUE(table.has_room_for_large());
}

TEST(ObjectTable, MoreThanTheLimitMayBeInUse) {
  ObjectTable table({}, 64);
  std::vector<std::shared_ptr<CachedObject>> used;
  for (int n = 0; n < 1000; ++n)
    used.push_back(table.find_or_add(table_version(n)));
  EXPECT_EQ(table.size(), 1000u);
  used.clear();
  for (int n = 1000; n < 6000; ++n)
    table.find_or_add(table_version(n));
  EXPECT_LT(table.size(), 400u) << "what is over goes with time";
}

TEST(ObjectTable, AnAbsentObjectStaysOutDuringAChange) {
  ObjectTable table({}, 1000);
  const auto object = table.find_or_add(table_version(1));
  EXPECT_FALSE(table.if_absent(table_version(1).digest(), [] { FAIL() << "it is there"; }));
  std::atomic<bool> changing = false;
  std::atomic<bool> added = false;
  std::thread adder;
  EXPECT_TRUE(table.if_absent(table_version(2).digest(), [&] {
    changing = true;
    adder = std::thread([&] {
      table.find_or_add(table_version(2));
      added = true;
    });
    // Time enough for the other thread, if it were let in.
    for (int i = 0; i < 1000; ++i)
      std::this_thread::yield();
    EXPECT_FALSE(added);
    changing = false;
  }));
  adder.join();
  EXPECT_TRUE(added);
  EXPECT_FALSE(changing);
}

}  // namespace
}  // namespace millrace
