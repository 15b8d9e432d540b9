#include "cache/small_object_file.h"

#include <gtest/gtest.h>

#include "platform/memory_disk.h"
#include "tests/cache/segment_objects.h"

namespace millrace {
namespace {

class SmallObjectFileTest : public ::testing::Test {
 protected:
  void open() { segments = std::move(open_segments(disk).store); }
  void SetUp() override { open(); }

  Status write(SmallObjectFile& file) {
    return file.write({0, unit_count(version.size())}, as_bytes(content),
                      segment_checksums(content), WrittenPages::kPassedBy);
  }
  void expect_right(SmallObjectFile& file) {
    std::string bytes(version.size(), '?');
    ASSERT_EQ(*file.file()->read_at(file.base(), std::as_writable_bytes(std::span(bytes))),
              bytes.size());
    EXPECT_EQ(bytes, content);
    std::vector<std::uint32_t> checksums(2);
    ASSERT_TRUE(file.read_checksums({1, 2}, checksums).ok());
    const UnitChecksums all = segment_checksums(content);
    EXPECT_EQ(checksums, (std::vector<std::uint32_t>{all[1], all[2]}));
  }

  MemoryDisk disk;
  std::shared_ptr<SegmentStore> segments;
  const ObjectVersion version = segment_object(1, 2 * kUnitBytes + 100);
  const std::string content = segment_content(version);
};

TEST_F(SmallObjectFileTest, IsReadWhereItWasWritten) {
  ASSERT_TRUE(put_segment_object(*segments, segment_object(0, 5000)).ok());
  SmallObjectFile file(segments, version, std::nullopt);
  EXPECT_EQ(file.file(), nullptr);
  ASSERT_TRUE(write(file).ok());
  EXPECT_GT(file.base(), 0u);
  expect_right(file);
  EXPECT_TRUE(write(file).ok()) << "it is there already, and immutable";
  expect_right(file);
}

TEST_F(SmallObjectFileTest, IsFoundAgain) {
  {
    SmallObjectFile file(segments, version, std::nullopt);
    ASSERT_TRUE(write(file).ok());
  }
  open();
  SmallObjectFile file(segments, version, segments->load(version).value());
  expect_right(file);
}

TEST_F(SmallObjectFileTest, GoesWhole) {
  SmallObjectFile file(segments, version, std::nullopt);
  EXPECT_TRUE(file.forget({0, 3}).ok()) << "nothing was there";
  ASSERT_TRUE(write(file).ok());
  ASSERT_TRUE(file.forget({0, 3}).ok());
  EXPECT_FALSE(segments->contains(version.digest()));
  ASSERT_TRUE(write(file).ok());
  // One bad unit spoils it.
  ASSERT_TRUE(file.distrust({1, 1}).ok());
  EXPECT_FALSE(segments->contains(version.digest()));
}

TEST_F(SmallObjectFileTest, IsNotHandedOut) {
  SmallObjectFile file(segments, version, std::nullopt);
  EXPECT_EQ(file.mark_handed_out(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace millrace
