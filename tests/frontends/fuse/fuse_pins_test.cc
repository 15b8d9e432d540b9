// Files of buckets that stay open, on a real mount.
#include "frontends/fuse/fuse_pins.h"

#include <fcntl.h>
#include <sys/stat.h>
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
  template <class Condition>
  static bool becomes(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return condition();
  }
  // Until the kernel has asked for attributes again, as it does once those that it was told are
  // old. False when it does not in time, or when `look` fails.
  template <class Look>
  bool holds_when_asked_again(Look look) {
    const std::uint64_t before = world.requests(FuseMetricOperation::kGetattr);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      if (!look()) return false;
      if (world.requests(FuseMetricOperation::kGetattr) > before) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
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
  EXPECT_TRUE(becomes([&] { return world.connection().pins.file(pinned) == nullptr; }));
}

TEST_F(FusePinsTest, S8AnOpenFileIsReadToItsEndAndHasItsAttributesWhenTheStoreHasAnother) {
  const std::string content(kMiB, 'b');
  put("f", content);
  ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
  const File file = File::open(world.mounted("buckets/live/f"), O_RDONLY).value();
  std::string got(content.size() + 1, 'x');
  ASSERT_EQ(::pread(file.descriptor(), got.data(), got.size(), 0), kMiB) << std::strerror(errno);
  const NodeNumber pinned = node("buckets/live/f");
  put("f", "another");
  while (node("buckets/live/f") == pinned)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  struct stat found{};
  EXPECT_TRUE(holds_when_asked_again([&] { return ::fstat(file.descriptor(), &found) == 0; }))
      << std::strerror(errno);
  EXPECT_EQ(found.st_size, kMiB);
  // The last read of who copies a file reaches behind its end, so the kernel wants to know that.
  EXPECT_TRUE(holds_when_asked_again([&] {
    return ::pread(file.descriptor(), got.data(), got.size(), kMiB - 100) == 100;
  })) << std::strerror(errno);
  EXPECT_EQ(got.substr(0, 100), content.substr(0, 100));
}

// Small ones and large ones: the kernel is told of their opens in two ways.
TEST_F(FusePinsTest, S8WhoOpenedBeforeARestartTakesNobodysPinAway) {
  put("small", std::string(100, 'b'));
  put("large", std::string(2 * kMiB, 'b'));
  ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
  for (const std::string name : {"buckets/live/small", "buckets/live/large"}) {
    File before = File::open(world.mounted(name), O_RDONLY).value();
    world.end_service();
    ASSERT_NO_FATAL_FAILURE(world.take_over());
    File after = File::open(world.mounted(name), O_RDONLY).value();
    const NodeNumber pinned = node(name);
    const auto releases = [this] { return world.requests(FuseMetricOperation::kRelease); };
    const std::uint64_t released = releases();
    before.close();
    EXPECT_TRUE(becomes([&] { return releases() > released; }));
    EXPECT_NE(world.connection().pins.file(pinned), nullptr) << name;
    after.close();
    EXPECT_TRUE(becomes([&] { return world.connection().pins.size() == 0; })) << name;
  }
}

}  // namespace
}  // namespace millrace
