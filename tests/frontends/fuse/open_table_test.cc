#include "frontends/fuse/open_table.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>

#include <gtest/gtest.h>

namespace millrace {
namespace {

OpenTable adopted(const OpenTable& table) {
  return OpenTable::adopt(File::adopt(::dup(table.descriptor()), "copy")).value();
}

TEST(OpenTable, WhoComesAfterAKillFindsWhatIsOpen) {
  OpenTable table = OpenTable::create().value();
  const std::uint64_t first = table.add({2, NodeNumber(10), 0}).value();
  const std::uint64_t second = table.add({4, NodeNumber(11), 7}).value();
  ASSERT_TRUE(table.remove(first));
  table.note_backing(7);

  OpenTable next = adopted(table);
  EXPECT_EQ(next.last_backing(), 7);
  EXPECT_EQ(next.find(2), std::nullopt);
  EXPECT_EQ(next.find(4), second);
  std::size_t seen = 0;
  next.visit([&](const OpenTable::Record& record) {
    ++seen;
    EXPECT_EQ(record.unique, 4U);
    EXPECT_EQ(record.node, NodeNumber(11));
    EXPECT_EQ(record.backing, 7);
  });
  EXPECT_EQ(seen, 1U);
  EXPECT_TRUE(next.remove(second));
}

TEST(OpenTable, AReleaseThatComesTwiceRemovesNothingElse) {
  OpenTable table = OpenTable::create().value();
  const std::uint64_t first = table.add({2, NodeNumber(10), 0}).value();
  EXPECT_TRUE(table.remove(first));
  const std::uint64_t second = table.add({4, NodeNumber(11), 0}).value();
  EXPECT_FALSE(table.remove(first)) << "the place is another's by now";
  EXPECT_TRUE(table.remove(second));
  EXPECT_FALSE(table.remove(second));
}

TEST(OpenTable, HandlesDifferAndPlacesAreUsedAgain) {
  OpenTable table = OpenTable::create().value();
  std::set<std::uint64_t> handles;
  for (std::uint64_t unique = 2; unique < 2000; unique += 2)
    EXPECT_TRUE(handles.insert(table.add({unique, NodeNumber(unique), 0}).value()).second);
  for (const std::uint64_t handle : handles)
    EXPECT_TRUE(table.remove(handle));
  EXPECT_FALSE(handles.contains(0));
  for (std::uint64_t unique = 2000; unique < 4000; unique += 2)
    EXPECT_TRUE(table.add({unique, NodeNumber(1), 0}));
}

// As the handles of files that are not in it do.
TEST(OpenTable, WhatItNeverHadTakesNoMemory) {
  OpenTable table = OpenTable::create().value();
  ASSERT_TRUE(table.add({2, NodeNumber(10), 0}));
  const auto blocks = [&table] {
    struct stat found{};
    EXPECT_EQ(::fstat(table.descriptor(), &found), 0);
    return found.st_blocks;
  };
  const auto before = blocks();
  for (std::uint64_t handle = 1; handle < OpenTable::kRecordsMax; handle += 1000)
    EXPECT_FALSE(table.remove((std::uint64_t{1} << 63) | handle));
  EXPECT_EQ(blocks(), before);
}

TEST(OpenTable, RefusesMoreThanItHasRoomFor) {
  OpenTable table = OpenTable::create().value();
  for (std::uint64_t n = 1; n <= OpenTable::kRecordsMax; ++n)
    ASSERT_TRUE(table.add({n, NodeNumber(1), 0}));
  const auto refused = table.add({1 + OpenTable::kRecordsMax, NodeNumber(1), 0});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), StatusCode::kResourceExhausted);
}

TEST(OpenTable, WhatIsNoTableIsRefused) {
  File empty = File::adopt(::memfd_create("other", MFD_CLOEXEC), "other");
  EXPECT_EQ(OpenTable::adopt(std::move(empty)).error(), StatusCode::kCorruption);
  const OpenTable table = OpenTable::create().value();
  const std::byte wrong{0xff};
  ASSERT_EQ(::pwrite(table.descriptor(), &wrong, 1, 0), 1);
  EXPECT_EQ(OpenTable::adopt(File::adopt(::dup(table.descriptor()), "copy")).error(),
            StatusCode::kCorruption);
}

}  // namespace
}  // namespace millrace
