// What calls of programs cost in requests of the kernel, on a real mount.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

constexpr int kListedFiles = 2000;
constexpr int kAttemptsMax = 5;

class FuseCostTest : public ::testing::Test {
 protected:
  std::uint64_t all_requests() {
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n <= static_cast<std::size_t>(FuseMetricOperation::kOther); ++n)
      sum += world.requests(static_cast<FuseMetricOperation>(n));
    return sum;
  }
  void publish(const std::string& ref) {
    const auto published = world.publish(ref);
    ASSERT_TRUE(published) << published.error().to_string();
  }
  // As `ls -l` does it: each name, and then what is known of it.
  std::size_t walk(std::string_view name) {
    DIR* const directory = ::opendir(world.mounted(name).c_str());
    EXPECT_NE(directory, nullptr) << std::strerror(errno);
    if (directory == nullptr) return 0;
    std::set<std::string> names;
    while (const dirent* entry = ::readdir(directory))
      names.insert(entry->d_name);
    for (const std::string& listed : names) {
      struct stat found{};
      EXPECT_EQ(::fstatat(::dirfd(directory), listed.c_str(), &found, AT_SYMLINK_NOFOLLOW), 0)
          << listed;
    }
    ::closedir(directory);
    return names.size();
  }
  std::uint64_t nodes_asked_for() {
    return world.requests(FuseMetricOperation::kLookup) +
           world.requests(FuseMetricOperation::kGetattr);
  }
  // Whether doing it again comes to cost no request at all. Tests beside this one may have the
  // kernel drop what it knows, but not all the while.
  bool becomes_free(const std::function<void()>& again) {
    for (int n = 0; n < kAttemptsMax; ++n) {
      const std::uint64_t before = all_requests();
      again();
      if (all_requests() == before) return true;
    }
    return false;
  }
  int error_at(std::string_view name) {
    struct stat found{};
    return ::stat(world.mounted(name).c_str(), &found) == 0 ? 0 : errno;
  }

  FuseWorld world;
};

TEST_F(FuseCostTest, S21NamesAboveVersionsAreBelievedForASecond) {
  world.tree.write("d/f", "x");
  publish("a@v1");
  ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
  const auto entry = [this](std::string_view directory, std::string_view name) {
    const NodeNumber above = world.files().resolve(world.context, directory).value().number;
    return world.connection().entry(above,
                                    world.files().lookup(world.context, above, name).value());
  };
  // With what the tree keeps it makes the 5 s of docs/semantics.md.
  EXPECT_EQ(entry("datasets", "a").entry_valid, 1U);
  EXPECT_EQ(entry("datasets/a", "v1").entry_valid, 1U);
  EXPECT_EQ(entry("datasets/a", "v1").attr_valid, 1U);
  EXPECT_GT(entry("datasets/a/v1", "d").entry_valid, 1'000'000U);
  EXPECT_GT(entry("datasets/a/v1/d", "f").attr_valid, 1'000'000U);
}

TEST_F(FuseCostTest, S21ANameThatIsAbsentAboveVersionsIsAskedForEachTime) {
  world.tree.write("d/f", "x");
  publish("a@v1");
  ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a", FuseOpening::kPassthrough));
  const std::uint64_t before = world.requests(FuseMetricOperation::kLookup);
  for (int n = 0; n < 2; ++n)
    EXPECT_EQ(error_at("none"), ENOENT);
  EXPECT_EQ(world.requests(FuseMetricOperation::kLookup) - before, 2U);
}

TEST_F(FuseCostTest, S21ADirectoryOfAVersionIsListedOnceWithAllThatIsKnownOfItsFiles) {
  for (int n = 0; n < kListedFiles; ++n)
    world.tree.write("many/" + std::to_string(n), "x");
  publish("a@v1");
  for (const FuseOpening opening : {FuseOpening::kPassthrough, FuseOpening::kStateless}) {
    world.unmount();
    ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", opening));
    const std::uint64_t before = nodes_asked_for();
    const std::uint64_t listed = world.requests(FuseMetricOperation::kReaddir);
    EXPECT_EQ(walk("many"), kListedFiles + 2U);
    EXPECT_LE(nodes_asked_for() - before, 10U) << "for the way there, and none for its files";
    EXPECT_GT(world.requests(FuseMetricOperation::kReaddir), listed);
    EXPECT_TRUE(becomes_free([&] { EXPECT_EQ(walk("many"), kListedFiles + 2U); }));
  }
}

TEST_F(FuseCostTest, S21ADirectoryOfAVersionIsListedOnceWhereVersionsAreShownToo) {
  for (int n = 0; n < kListedFiles; ++n)
    world.tree.write("many/" + std::to_string(n), "x");
  publish("a@v1");
  ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a", FuseOpening::kPassthrough));
  const std::uint64_t before = nodes_asked_for();
  EXPECT_EQ(walk("v1/many"), kListedFiles + 2U);
  EXPECT_LE(nodes_asked_for() - before, 10U);
  // The names of versions are asked for again, and opens of directories are told.
  bool is_kept = false;
  for (int n = 0; n < kAttemptsMax && !is_kept; ++n) {
    const std::uint64_t listed = world.requests(FuseMetricOperation::kReaddir);
    const std::uint64_t asked = nodes_asked_for();
    EXPECT_EQ(walk("v1/many"), kListedFiles + 2U);
    is_kept =
        world.requests(FuseMetricOperation::kReaddir) == listed && nodes_asked_for() - asked <= 2U;
  }
  EXPECT_TRUE(is_kept);
}

TEST_F(FuseCostTest, AColdFileComesInReadsOfAMegabyte) {
  world.tree.write("whole.bin", publish_bytes(3 * kMiB, 5));
  publish("a@v1");
  for (const FuseOpening opening : {FuseOpening::kPassthrough, FuseOpening::kStateless}) {
    world.unmount();
    ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", opening));
    const std::uint64_t before = world.requests(FuseMetricOperation::kRead);
    EXPECT_TRUE(FuseWorld::read_file_by(world.mounted("whole.bin"), 128 * kKiB) ==
                FuseWorld::read_file_by(world.tree.path("whole.bin"), 128 * kKiB));
    EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
    const std::uint64_t reads = world.requests(FuseMetricOperation::kRead) - before;
    EXPECT_GE(reads, 3U);
    // The kernel's read-ahead begins smaller, and grows.
    EXPECT_LE(reads, 8U);
  }
}

TEST_F(FuseCostTest, AColdSmallFileCostsALookupAndARead) {
  world.tree.write("first", "x");
  for (int n = 0; n < 20; ++n)
    world.tree.write("d/" + std::to_string(n), publish_bytes(7'000, n));
  publish("a@v1");
  ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", FuseOpening::kStateless));
  // With the first file the kernel learns that it need not tell of opens, and where `d` is.
  EXPECT_EQ(FuseWorld::read_file_by(world.mounted("first"), 128 * kKiB), "x");
  EXPECT_EQ(error_at("d"), 0);
  const std::uint64_t before = all_requests();
  const std::uint64_t lookups = world.requests(FuseMetricOperation::kLookup);
  const std::uint64_t reads = world.requests(FuseMetricOperation::kRead);
  EXPECT_TRUE(FuseWorld::read_file_by(world.mounted("d/7"), 128 * kKiB) ==
              FuseWorld::read_file_by(world.tree.path("d/7"), 128 * kKiB));
  EXPECT_EQ(world.requests(FuseMetricOperation::kLookup) - lookups, 1U);
  EXPECT_EQ(world.requests(FuseMetricOperation::kRead) - reads, 1U);
  EXPECT_EQ(all_requests() - before, 2U);
}

}  // namespace
}  // namespace millrace
