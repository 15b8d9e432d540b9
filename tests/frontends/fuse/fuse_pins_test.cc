// Files of buckets that stay open, on a real mount.
#include "frontends/fuse/fuse_pins.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

class FusePinsTest : public ::testing::Test {
 protected:
  void put(const std::string& key, std::string_view content) {
    ASSERT_TRUE(world.live->put(world.context, ObjectKey(key), Slice::copy_of(content), {}));
  }
  NodeNumber node(std::string_view path) {
    return world.files().resolve(world.context, path).value().number;
  }
  // As reads of so many others do.
  void use_others() {
    const NodeNumber others = node("buckets/live/others");
    ASSERT_TRUE(world.files()
                    .read_directory(world.context, others, 0,
                                    [this](const NodeEntry& entry) {
                                      return world.connection()
                                          .files.file(world.context, entry.attributes.number)
                                          .has_value();
                                    })
                    .ok());
  }
  // Past the page cache.
  static std::string byte_at(const File& file, off_t offset) {
    alignas(4096) static char page[4096];
    const ssize_t got = ::pread(file.descriptor(), page, sizeof(page), offset);
    return got < 0 ? std::string(std::strerror(errno)) : std::string(page, 1);
  }

  FuseWorld world;
  const LogCapture quiet;
};

TEST_F(FusePinsTest, S8WhatIsCachedOfAnOpenFileReadsOnHoweverManyOthersAreUsed) {
  constexpr int kOthers = 10'000;  // More than the files that are kept because they were used.
  constexpr off_t kBytes = 16 * kMiB;
  put("f", std::string(kBytes, 'b'));
  for (int n = 0; n < kOthers; ++n)
    put("others/" + std::to_string(n), "");
  ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
  File file = File::open(world.mounted("buckets/live/f"), O_RDONLY | O_DIRECT).value();
  EXPECT_EQ(byte_at(file, 0), "b");
  const NodeNumber pinned = node("buckets/live/f");
  put("f", std::string(kBytes, 'a'));
  EXPECT_EQ(byte_at(file, kBytes - 4096), std::strerror(ESTALE)) << "the other is known";
  use_others();
  EXPECT_EQ(byte_at(file, 0), "b");
  EXPECT_NE(world.connection().pins.file(pinned), nullptr);
  file.close();
  // The kernel tells of the last close after close(2) has returned.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (world.connection().pins.file(pinned) != nullptr &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(world.connection().pins.file(pinned), nullptr);
}

}  // namespace
}  // namespace millrace
