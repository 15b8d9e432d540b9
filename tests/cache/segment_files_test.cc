#include "cache/segment_files.h"

#include <gtest/gtest.h>

#include "cache/segment_format.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"

namespace millrace {
namespace {

class SegmentFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t segment = 0; segment < 3; ++segment) {
      ASSERT_TRUE(disk_.open(files_.data_path(segment), OpenMode::kCreateNew));
      files_.add(segment);
    }
  }

  // Whether the disk was asked for the file.
  bool opens(std::uint32_t segment) {
    const std::uint64_t before = counted_.calls();
    EXPECT_TRUE(files_.open(segment));
    return counted_.calls() > before;
  }

  MemoryDisk disk_;
  FaultyDisk counted_{disk_};
  SegmentFiles files_{counted_, "/", 2};
};

TEST_F(SegmentFilesTest, KeepsThoseUsedLast) {
  EXPECT_TRUE(opens(0));
  EXPECT_TRUE(opens(1));
  EXPECT_FALSE(opens(0));
  EXPECT_TRUE(opens(2));  // Instead of 1.
  EXPECT_FALSE(opens(0));
  EXPECT_FALSE(opens(2));
  EXPECT_TRUE(opens(1));  // Instead of 0.
  EXPECT_FALSE(opens(2));
  EXPECT_TRUE(opens(0));
}

TEST_F(SegmentFilesTest, AFileLivesAsLongAsSomebodyHoldsIt) {
  std::shared_ptr<DiskFile> held = files_.open(0).value();
  const std::weak_ptr<DiskFile> watched = held;
  files_.forget(0);
  EXPECT_EQ(files_.open(0).error(), StatusCode::kNotFound);
  EXPECT_TRUE(held->size());
  held.reset();
  EXPECT_TRUE(watched.expired());
}

TEST_F(SegmentFilesTest, WhatIsForgottenWhileItOpensIsNotKept) {
  counted_.set_fault([this](const DiskCall&) {
    files_.forget(0);
    return 0;
  });
  std::shared_ptr<DiskFile> held = files_.open(0).value();
  const std::weak_ptr<DiskFile> watched = held;
  held.reset();
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace millrace
