// What this machine has is served on a real mount, whoever else waits for the store.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/hanging_readers.h"

namespace millrace {
namespace {

class FuseAtHandTest : public HangingReaders {
 protected:
  void SetUp() override {
    HangingReaders::SetUp();
    ASSERT_NO_FATAL_FAILURE(mount_all());
    for (const char* name : {"whole.bin", "other.bin"})
      EXPECT_TRUE(same_as_source(name));
    // The kernel keeps neither names nor pages of this one, but the cache has it.
    ASSERT_TRUE(becomes([this] {
      char cached[8];
      const ssize_t got = ::getxattr(path("whole.bin").c_str(), "user.millrace.cached", cached, 8);
      return got > 0 && std::string_view(cached, static_cast<std::size_t>(got)) == "yes";
    }));
  }
  std::string path(std::string_view name) const {
    return world.mounted("datasets/a/v1/" + std::string(name));
  }
  // Past the page cache, so that each read is a request.
  bool same_as_source(const char* name) const {
    return FuseWorld::read_file_by(path(name), 128 * kKiB, O_DIRECT) ==
           FuseWorld::read_file_by(world.tree.path(name), kMiB);
  }
  // By a process of its own, which may wait for ever.
  void expect_works(const char* what, const std::function<bool()>& attempt) {
    EXPECT_EQ(ending_of(start_reader(attempt)), 0) << what;
  }
  std::size_t names_in(const std::string& directory) const {
    DIR* const opened = ::opendir(directory.c_str());
    if (opened == nullptr) return 0;
    std::size_t names = 0;
    while (const dirent* entry = ::readdir(opened))
      names += entry->d_name[0] == '.' ? 0 : 1;
    ::closedir(opened);
    return names;
  }
  void expect_all_at_hand_is_served() {
    expect_works("a large file", [this] { return same_as_source("whole.bin"); });
    expect_works("a small file", [this] { return same_as_source("other.bin"); });
    expect_works("a name that was never asked for", [this] {
      struct stat found{};
      return ::stat(path("unseen.bin").c_str(), &found) == 0 && found.st_size == 5;
    });
    expect_works("a name that is not there", [this] {
      struct stat found{};
      return ::stat(path("none.bin").c_str(), &found) < 0 && errno == ENOENT;
    });
    expect_works("a listing", [this] { return names_in(path("")) == 3; });
    EXPECT_GE(waiting(), kMoreThanThreads) << "those who wait for the store wait on";
  }
};

TEST_F(FuseAtHandTest, S19CachedFilesAreReadWhenMoreCallsWaitThanThereAreThreads) {
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  expect_all_at_hand_is_served();
}

TEST_F(FuseAtHandTest, S19ListsThatWereSeenAreShownWhenMoreCallsWaitThanThereAreThreads) {
  ASSERT_EQ(names_in(world.mounted("datasets/a")), 1U);
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  world.age_lists();
  expect_works("the datasets", [this] { return names_in(world.mounted("datasets")) == 2; });
  expect_works("versions", [this] { return names_in(world.mounted("datasets/a")) == 1; });
  expect_all_at_hand_is_served();
}

TEST_F(FuseAtHandTest, S19ALateAnswerOfTheStoreIsNoticedWhenMoreCallsWaitThanThereAreThreads) {
  ASSERT_EQ(names_in(world.mounted("datasets/a")), 1U);
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  // Those that wait go on to do so; the store answers all that is asked from now on.
  world.faulty->set_plan(no_faults());
  ASSERT_TRUE(world.publish("a@v2"));
  world.age_lists();
  expect_works("a new version", [this] { return names_in(world.mounted("datasets/a")) == 2; });
  EXPECT_GE(waiting(), kMoreThanThreads) << "those who wait for the store wait on";
}

TEST_F(FuseAtHandTest, S19CachedFilesAreReadHoweverManyReadsWait) {
  // More than the kernel sends ahead of readers unless it is told otherwise.
  constexpr std::size_t kReads = 1000;
  for (std::size_t n = 0; n < kReads; ++n)
    world.tree.write("files/" + std::to_string(n), publish_bytes(100, n));
  ASSERT_TRUE(world.publish("many@v1"));
  world.age_lists();
  ASSERT_EQ(names_in(world.mounted("datasets/many/v1/files")), kReads);
  hang();
  const std::uint64_t before = world.requests(FuseMetricOperation::kRead);
  start_reader([this] {
    raise_descriptor_limit();
    for (std::size_t n = 0; n < kReads; ++n) {
      const std::string name = "datasets/many/v1/files/" + std::to_string(n);
      const int fd = ::open(world.mounted(name).c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 || ::posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED) != 0) return false;
    }
    ::pause();
    return true;
  });
  EXPECT_TRUE(
      becomes([&] { return world.requests(FuseMetricOperation::kRead) >= before + kReads; }));
  expect_works("by way of the page cache", [this] {
    const int fd = ::open(path("other.bin").c_str(), O_RDONLY | O_CLOEXEC);
    return ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0 &&
           FuseWorld::read_file_by(path("other.bin"), kMiB) ==
               FuseWorld::read_file_by(world.tree.path("other.bin"), kMiB);
  });
  expect_works("a large file", [this] { return same_as_source("whole.bin"); });
}

// The next daemon has no lists, and has checked nothing of what is cached.
TEST_F(FuseAtHandTest, S19CachedFilesAreReadAfterARestartWhenMoreCallsWaitThanThereAreThreads) {
  world.end_service();
  ASSERT_NO_FATAL_FAILURE(world.take_over());
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  expect_all_at_hand_is_served();
}

TEST_F(FuseAtHandTest, S19FilesOfBucketsAreOpenedWhenMoreCallsWaitThanThereAreThreads) {
  const std::string directory = world.mounted("buckets/live/a");
  ASSERT_TRUE(world.live->put(world.context, ObjectKey("a/f"), Slice::copy_of("bytes"), {}));
  ASSERT_EQ(FuseWorld::read_file_by(directory + "/f", kMiB), "bytes");
  ASSERT_EQ(names_in(directory), 1U);
  ASSERT_TRUE(becomes([this] { return world.connection().pins.size() == 0; }));
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  // Past what is known of it, so that it is asked for while the kernel still has the name.
  struct stat found{};
  ASSERT_EQ(::stat((directory + "/f").c_str(), &found), 0);
  std::this_thread::sleep_for(2 * FuseWorld::kBucketLifetime);
  world.live_faulty->set_plan([](const FaultableCall&) -> std::optional<Fault> {
    return Fault{.kind = Fault::Kind::kHang};
  });
  expect_works("a file",
               [&] { return FuseWorld::read_file_by(directory + "/f", kMiB) == "bytes"; });
  expect_works("a listing", [&] { return names_in(directory) == 1; });
  EXPECT_TRUE(becomes([this] { return world.connection().pins.size() == 0; })) << "it is closed";
}

}  // namespace
}  // namespace millrace
