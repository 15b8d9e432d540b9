#include "cache/complete_object.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "platform/memory_disk.h"
#include "platform/posix_disk.h"
#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

std::string read_descriptor(int descriptor, std::size_t size) {
  std::string bytes(size + 1, '?');
  bytes.resize(static_cast<std::size_t>(
      std::max<ssize_t>(::pread(descriptor, bytes.data(), bytes.size(), 0), 0)));
  return bytes;
}

TEST(MemoryCompleteObject, IsACopyThatNobodyCanChange) {
  const std::string text = "a small object";
  const auto object = MemoryCompleteObject::make(Slice::copy_of(text));
  ASSERT_TRUE(object) << object.error().to_string();
  const int descriptor = (*object)->descriptor();
  EXPECT_EQ((*object)->size(), text.size());
  EXPECT_EQ(read_descriptor(descriptor, text.size()), text);
  EXPECT_EQ(::pwrite(descriptor, "x", 1, 0), -1);
  EXPECT_EQ(::ftruncate(descriptor, 0), -1);
  EXPECT_EQ(::mmap(nullptr, text.size(), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            MAP_FAILED);
  EXPECT_EQ(::fcntl(descriptor, F_ADD_SEALS, F_SEAL_WRITE), -1) << "not even its seals";
  EXPECT_EQ(read_descriptor(descriptor, text.size()), text);
}

TEST(MemoryCompleteObject, MayBeEmpty) {
  const auto object = MemoryCompleteObject::make(Slice());
  ASSERT_TRUE(object) << object.error().to_string();
  EXPECT_EQ(read_descriptor((*object)->descriptor(), 0), "");
}

class FileCompleteObjectTest : public ::testing::Test {
 protected:
  // An object whose first unit is on the disk.
  void SetUp() override {
    Task nothing = [] {};
    ASSERT_EQ(object->begin_load(nothing), CachedObject::Load::kStarting);
    object->loaded(nullptr, {0}, false);
  }

  CacheSpace space{kGiB};
  const std::shared_ptr<CachedObject> object =
      std::make_shared<CachedObject>(stored_version("a", 2 * kMiB), ReadaheadOptions{});
};

TEST_F(FileCompleteObjectTest, HoldsTheSpaceOfAnUnlinkedFile) {
  std::string directory = ::testing::TempDir() + "complete_object_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  PosixDisk disk;
  {
    const auto file = *disk.open(directory + "/data", OpenMode::kCreate);
    ASSERT_TRUE(file->write_at(0, as_bytes("bytes")).ok());
  }
  auto complete = FileCompleteObject::make(*disk.open(directory + "/data", OpenMode::kRead), 5,
                                           HeldObject(object, space));
  ASSERT_TRUE(complete);
  EXPECT_TRUE(object->goes_whole());
  std::filesystem::remove_all(directory);
  space.remove_object(object->version().digest(), *object->begin_removal());
  EXPECT_EQ(space.used_bytes(), kUnitBytes);
  EXPECT_EQ((*complete)->size(), 5u);
  EXPECT_EQ(read_descriptor((*complete)->descriptor(), 5), "bytes");
  complete->reset();
  EXPECT_EQ(space.used_bytes(), 0u);
}

TEST_F(FileCompleteObjectTest, AMovedHoldIsDroppedOnce) {
  {
    HeldObject first(object, space);
    const HeldObject second(std::move(first));
    space.remove_object(object->version().digest(), *object->begin_removal());
    EXPECT_EQ(space.used_bytes(), kUnitBytes);
  }
  EXPECT_EQ(space.used_bytes(), 0u);
}

TEST_F(FileCompleteObjectTest, ADiskWithoutDescriptorsHandsNothingOut) {
  MemoryDisk disk;
  auto complete = FileCompleteObject::make(*disk.open("/data", OpenMode::kCreate), 5,
                                           HeldObject(object, space));
  EXPECT_EQ(complete.error().code(), StatusCode::kUnsupported);
  EXPECT_EQ(object->begin_removal(), 0u) << "nobody holds it";
}

}  // namespace
}  // namespace millrace
