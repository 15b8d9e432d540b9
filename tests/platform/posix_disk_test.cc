// What only real files and processes show.

#include "platform/posix_disk.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/file.h"
#include "platform/path.h"
#include "platform/process.h"
#include "tests/servers/child_process.h"

namespace millrace {
namespace {

// Where the process that is started to hold a lock finds its path.
constexpr const char* kLockPathVariable = "MILLRACE_TEST_LOCK_PATH";

class PosixDiskTest : public ::testing::Test {
 protected:
  PosixDiskTest() {
    std::string pattern = ::testing::TempDir() + "millrace-posix-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~PosixDiskTest() override { std::filesystem::remove_all(root_); }
  std::string path(std::string_view name) const { return join_path(root_, name); }

  // True once somebody else holds the lock and has written its line.
  bool wait_until_held(const std::string& path) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (std::chrono::steady_clock::now() < deadline) {
      std::error_code error;
      const auto size = std::filesystem::file_size(path, error);
      if (!error && size > 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  std::string root_;
  PosixDisk disk_;
};

// A file system on a device that is larger than what is behind it: writes fail when they reach it.
class FullDevice {
 public:
  explicit FullDevice(std::string directory) : directory_(std::move(directory)) {
    run(R"(
      mkdir "$0/behind" "$0/device"
      mount -t tmpfs -o size=20m none "$0/behind"
      truncate -s 100m "$0/behind/image"
      mkfs.ext4 -q -F "$0/behind/image"
      mount -o loop "$0/behind/image" "$0/device")");
  }
  ~FullDevice() { run(R"(umount "$0/device"; umount "$0/behind")"); }
  FullDevice(const FullDevice&) = delete;
  FullDevice& operator=(const FullDevice&) = delete;

  std::string path(std::string_view name) const {
    return directory_ + "/device/" + std::string(name);
  }

 private:
  void run(const std::string& script) {
    const auto [status, output] = testing::run_command({"bash", "-ec", script, directory_});
    EXPECT_EQ(status, 0) << output;
  }

  const std::string directory_;
};

TEST_F(PosixDiskTest, WhatTheDeviceLostAfterTheWriteIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting a file system on a device needs root";
  const FullDevice device(root_);
  const auto file = disk_.open(device.path("a"), OpenMode::kCreate).value();
  const std::string block(50 * kMiB, 'x');
  ASSERT_TRUE(file->write_at(0, as_bytes(block)).ok()) << "it fits into the page cache";
  const File other = File::open(device.path("a"), O_RDONLY).value();
  (void)::syncfs(other.descriptor());
  std::string read(4096, '?');
  const MutableByteView into = std::as_writable_bytes(std::span(read));
  for (int i = 0; i < 2; ++i) {
    const auto read_at = file->read_at(0, into);
    EXPECT_TRUE(!read_at && read_at.error().code() == StatusCode::kIoError);
    const auto read_now = file->read_now(0, into);
    EXPECT_TRUE(!read_now && read_now.error().code() == StatusCode::kIoError);
  }
}

TEST_F(PosixDiskTest, ReadNowGivesWhatWasJustWritten) {
  const auto file = disk_.open(path("a"), OpenMode::kCreate).value();
  const std::string block(4096, 'x');
  ASSERT_TRUE(file->write_at(0, as_bytes(block)).ok());
  std::string text(4096, '?');
  iovec target{.iov_base = text.data(), .iov_len = text.size()};
  if (::preadv2(*file->descriptor(), &target, 1, 0, RWF_NOWAIT) < 0 && errno != EAGAIN) {
    GTEST_SKIP() << "this file system cannot tell what is in memory";
  }
  text.assign(4096, '?');
  const auto into = std::as_writable_bytes(std::span(text));
  ASSERT_TRUE(file->read_now(0, into).value());
  EXPECT_EQ(text, block);
  EXPECT_FALSE(file->read_now(1, into).value());
  EXPECT_FALSE(file->read_now(4096, into).value());
}

TEST_F(PosixDiskTest, ReadNowFailsWhereReadingIsRefused) {
  const File file = File::open(path("a"), O_WRONLY | O_CREAT).value();
  std::byte byte{};
  const Status status = file.read_now(0, {&byte, 1}).error();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_THAT(status.message(), ::testing::HasSubstr(path("a")));
}

TEST_F(PosixDiskTest, APunchBeyondWhatFilesCanHoldIsRefused) {
  const auto file = disk_.open(path("a"), OpenMode::kCreate).value();
  EXPECT_EQ(file->punch(1, UINT64_MAX).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(file->punch(UINT64_MAX, 1).code(), StatusCode::kInvalidArgument);
}

TEST_F(PosixDiskTest, APunchSaysWhenTheFileSystemCannot) {
  // No file system of /proc has holes.
  const File file = File::open("/proc/self/comm", O_RDWR).value();
  const Status status = file.punch(0, 1);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported) << status.to_string();
  EXPECT_THAT(status.message(), ::testing::HasSubstr("/proc/self/comm"));
}

// Not a test of its own: what the process does that TheLockGoesWithTheProcess starts.
TEST(PosixDiskLockHolder, DISABLED_HoldsUntilKilled) {
  PosixDisk disk;
  const auto lock = disk.lock(std::getenv(kLockPathVariable), describe_this_process("holder"));
  ASSERT_TRUE(lock.has_value()) << lock.error().to_string();
  for (;;)
    ::pause();
}

TEST_F(PosixDiskTest, TheLockGoesWithTheProcess) {
  const std::string lock_path = path("lock");
  testing::ChildProcess holder(
      {"/proc/self/exe", "--gtest_also_run_disabled_tests",
       "--gtest_filter=PosixDiskLockHolder.DISABLED_HoldsUntilKilled"},
      {.output_file = path("output"), .environment = {{kLockPathVariable, lock_path}}});
  ASSERT_TRUE(wait_until_held(lock_path));
  const Status status = disk_.lock(lock_path, "me").error();
  EXPECT_EQ(status.code(), StatusCode::kConflict);
  EXPECT_THAT(status.message(),
              ::testing::StartsWith(
                  fmt::format("{} is held by holder, process {} on ", lock_path, holder.pid())));
  holder.signal(SIGKILL);
  ASSERT_EQ(holder.wait(std::chrono::seconds(30)), 128 + SIGKILL);
  const auto lock = disk_.lock(lock_path, "me");
  ASSERT_TRUE(lock.has_value()) << lock.error().to_string();
  EXPECT_EQ(disk_.lock(lock_path, "you").error().message(), lock_path + " is held by me");
}

TEST_F(PosixDiskTest, AReleasedLockIsFreeThoughAForkedChildLives) {
  auto lock = disk_.lock(path("lock"), "me");
  ASSERT_TRUE(lock.has_value());
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;)
      ::pause();
  }
  ASSERT_GT(child, 0);
  lock->reset();
  EXPECT_TRUE(disk_.lock(path("lock"), "me again").has_value());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(PosixDiskTest, ALockDoesNotEmptyWhatALinkPointsTo) {
  ASSERT_TRUE(
      disk_.open(path("precious"), OpenMode::kCreate).value()->write_at(0, as_bytes("1")).ok());
  std::filesystem::create_symlink(path("precious"), path("lock"));
  EXPECT_EQ(disk_.lock(path("lock"), "me").error().code(), StatusCode::kIoError);
  EXPECT_EQ(std::filesystem::file_size(path("precious")), 1u);
}

TEST(DescribeThisProcess, NamesProgramProcessAndHost) {
  const std::string text = describe_this_process("millrace serve");
  const std::string start = fmt::format("millrace serve, process {} on ", ::getpid());
  ASSERT_THAT(text, ::testing::StartsWith(start));
  EXPECT_GT(text.size(), start.size());
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST(MakeRoomForDescriptors, MakesTheKernelsTableLarge) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  make_room_for_descriptors();
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "FDSize:") {
  }
  rlim_t slots = 0;
  status >> slots;
  EXPECT_GE(slots, std::min<rlim_t>(limit.rlim_cur, 4096));
}

}  // namespace
}  // namespace millrace
