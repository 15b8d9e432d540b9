// A real mount, read by ordinary system calls.
#include "frontends/fuse/fuse_session.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "frontends/fuse/fuse_kernel.h"
#include "tests/dataset/version_world.h"
#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

constexpr std::size_t kLargeBytes = 3 * kMiB + 4711;

class FuseSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fill_tree(world.tree, 11);
    world.tree.write("whole.bin", publish_bytes(kLargeBytes, 5));
    const auto published = world.publish("a@v1");
    ASSERT_TRUE(published) << published.error().to_string();
  }
  void mount_version(FuseOpening opening) {
    ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", opening));
  }
  std::string source(std::string_view name) const {
    return FuseWorld::read_file_by(world.tree.path(name), 1 * kMiB);
  }
  std::string mounted(std::string_view name, std::size_t piece = 128 * kKiB, int flags = 0) const {
    return FuseWorld::read_file_by(world.mounted(name), piece, flags);
  }
  // Everything below the mount against the source.
  void expect_same_tree() {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(world.tree.root())) {
      const std::string name = entry.path().lexically_relative(world.tree.root());
      struct stat wanted{};
      struct stat found{};
      ASSERT_EQ(::lstat(entry.path().c_str(), &wanted), 0);
      ASSERT_EQ(::lstat(world.mounted(name).c_str(), &found), 0) << name;
      EXPECT_EQ(found.st_mode, wanted.st_mode) << name;
      EXPECT_EQ(found.st_mtim.tv_sec, wanted.st_mtim.tv_sec) << name;
      EXPECT_EQ(found.st_mtim.tv_nsec, wanted.st_mtim.tv_nsec) << name;
      if (!S_ISREG(wanted.st_mode)) continue;
      ++files;
      EXPECT_EQ(found.st_size, wanted.st_size) << name;
      ASSERT_NO_FATAL_FAILURE(expect_same_bytes(name, files));
    }
    EXPECT_GT(files, 100U);
  }
  // In all ways; `first` says by which it begins, since the others find it cached.
  void expect_same_bytes(const std::string& name, std::size_t first) {
    SCOPED_TRACE(name);
    const std::string wanted = source(name);
    for (std::size_t n = 0; n < 4; ++n) {
      switch ((first + n) % 4) {
        case 0:
          EXPECT_TRUE(mounted(name) == wanted) << "in sequence";
          break;
        case 1:
          ASSERT_NO_FATAL_FAILURE(expect_random_reads(name, wanted));
          break;
        case 2:
          ASSERT_NO_FATAL_FAILURE(expect_mapped(name, wanted));
          break;
        default:
          EXPECT_TRUE(mounted(name, 1 * kMiB, O_DIRECT) == wanted) << "with O_DIRECT";
      }
    }
  }
  void expect_random_reads(const std::string& name, std::string_view wanted) const {
    const int fd = ::open(world.mounted(name).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const File file = File::adopt(fd, name);
    std::mt19937_64 random(7);
    std::string buffer(200'000, '\0');
    for (int n = 0; n < (wanted.size() > kMiB ? 100 : 5); ++n) {
      const std::size_t at = random() % (wanted.size() + 1);
      const std::size_t length = random() % buffer.size();
      const ssize_t got = ::pread(fd, buffer.data(), length, static_cast<off_t>(at));
      ASSERT_EQ(got, static_cast<ssize_t>(std::min(length, wanted.size() - at)));
      ASSERT_TRUE(std::string_view(buffer).substr(0, static_cast<std::size_t>(got)) ==
                  wanted.substr(at, static_cast<std::size_t>(got)))
          << "at " << at;
    }
  }
  void expect_mapped(const std::string& name, std::string_view wanted) const {
    if (wanted.empty()) return;
    const int fd = ::open(world.mounted(name).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(fd, 0);
    const File file = File::adopt(fd, name);
    void* const map = ::mmap(nullptr, wanted.size(), PROT_READ, MAP_SHARED, fd, 0);
    ASSERT_NE(map, MAP_FAILED);
    EXPECT_EQ(std::memcmp(map, wanted.data(), wanted.size()), 0) << "by mmap";
    ::munmap(map, wanted.size());
  }

  FuseWorld world;
};

class FuseOpeningTest : public FuseSessionTest,
                        public ::testing::WithParamInterface<FuseOpening> {};

INSTANTIATE_TEST_SUITE_P(Openings, FuseOpeningTest,
                         ::testing::Values(FuseOpening::kPassthrough, FuseOpening::kStateless),
                         [](const auto& tested) {
                           return tested.param == FuseOpening::kStateless ? "Stateless"
                                                                          : "Passthrough";
                         });

TEST_P(FuseOpeningTest, S20EveryFileReadsAsItWasPublishedInAllWays) {
  mount_version(GetParam());
  expect_same_tree();
  expect_same_tree();  // Warm.
}

TEST_P(FuseOpeningTest, ListingsAreThoseOfTheSource) {
  mount_version(GetParam());
  const auto names = [](const std::string& root) {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      found.push_back(entry.path().lexically_relative(root));
    std::ranges::sort(found);
    return found;
  };
  EXPECT_EQ(names(world.mounted()), names(world.tree.root()));
  EXPECT_EQ(std::filesystem::read_symlink(world.mounted("link")), "large.bin");
}

TEST_P(FuseOpeningTest, ADirectoryLargerThanOneAnswerIsListedWhole) {
  for (int n = 0; n < 20'000; ++n)
    world.tree.write("many/" + std::to_string(n), "");
  ASSERT_TRUE(world.publish("b@v1"));
  ASSERT_NO_FATAL_FAILURE(world.mount("datasets/b/v1", GetParam()));
  for (int pass = 0; pass < 2; ++pass) {
    std::set<std::string> seen;
    DIR* const directory = ::opendir(world.mounted("many").c_str());
    ASSERT_NE(directory, nullptr);
    std::size_t dots = 0;
    while (const dirent* entry = ::readdir(directory)) {
      if (entry->d_name[0] == '.') {
        ++dots;
      } else {
        EXPECT_TRUE(seen.insert(entry->d_name).second) << "twice: " << entry->d_name;
      }
    }
    ::closedir(directory);
    EXPECT_EQ(seen.size(), 20'000U);
    EXPECT_EQ(dots, 2U);
  }
}

TEST_P(FuseOpeningTest, S24NothingCanBeWritten) {
  mount_version(GetParam());
  EXPECT_LT(::open(world.mounted("large.bin").c_str(), O_RDWR | O_CLOEXEC), 0);
  EXPECT_EQ(errno, EROFS);
  EXPECT_LT(::open(world.mounted("new").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600), 0);
  EXPECT_EQ(errno, EROFS);
  EXPECT_LT(::unlink(world.mounted("large.bin").c_str()), 0);
  EXPECT_EQ(errno, EROFS);
  EXPECT_LT(::mkdir(world.mounted("new").c_str(), 0700), 0);
  EXPECT_EQ(errno, EROFS);
}

TEST_P(FuseOpeningTest, S21ANameThatIsNotThereIsRememberedAsSuch) {
  mount_version(GetParam());
  struct stat found{};
  for (int n = 0; n < 3; ++n) {
    EXPECT_LT(::stat(world.mounted("no such file").c_str(), &found), 0);
    EXPECT_EQ(errno, ENOENT);
  }
  EXPECT_EQ(world.requests(FuseMetricOperation::kLookup), 1U);
}

TEST_P(FuseOpeningTest, AttributesTellWhatAFileIsPartOf) {
  mount_version(GetParam());
  const auto value = [this](const char* name) {
    char text[256];
    const ssize_t got = ::getxattr(world.mounted("whole.bin").c_str(), name, text, sizeof(text));
    return got < 0 ? std::string(std::strerror(errno))
                   : std::string(text, static_cast<std::size_t>(got));
  };
  EXPECT_EQ(value("user.millrace.version"), "a@v1");
  EXPECT_EQ(value("user.millrace.cached"), "no");
  EXPECT_EQ(value("user.millrace.digest").substr(0, 7), "sha256:");
  EXPECT_EQ(value("user.other"), std::strerror(ENODATA));
  EXPECT_EQ(value("system.posix_acl_access"), std::strerror(EOPNOTSUPP));
  EXPECT_EQ(value("security.selinux"), std::strerror(EOPNOTSUPP));
  mounted("whole.bin");
  // Readers have it before the disk does.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (value("user.millrace.cached") != "yes" && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(value("user.millrace.cached"), "yes");
  char names[256];
  const ssize_t length = ::listxattr(world.mounted("whole.bin").c_str(), names, sizeof(names));
  ASSERT_GT(length, 0);
  EXPECT_NE(std::string_view(names, static_cast<std::size_t>(length)).find("user.millrace.cached"),
            std::string_view::npos);
  EXPECT_EQ(::listxattr(world.mounted("whole.bin").c_str(), names, 3), -1);
  EXPECT_EQ(errno, ERANGE);
}

TEST_P(FuseOpeningTest, TheSizeOfTheFileSystemIsThatOfTheVersion) {
  mount_version(GetParam());
  struct statvfs found{};
  ASSERT_EQ(::statvfs(world.mounted().c_str(), &found), 0);
  EXPECT_GT(found.f_blocks * found.f_frsize, kLargeBytes);
  EXPECT_EQ(found.f_bfree, 0U);
  EXPECT_GT(found.f_files, 100U);
  EXPECT_EQ(found.f_namemax, 255U);
}

TEST_F(FuseSessionTest, AWarmSmallFileCostsNoRequestWhenOpensAreNotTold) {
  mount_version(FuseOpening::kStateless);
  const std::string wanted = mounted("large.bin");
  const auto requests = [this] {
    std::uint64_t sum = 0;
    for (std::size_t n = 0; n <= static_cast<std::size_t>(FuseMetricOperation::kOther); ++n)
      sum += world.requests(static_cast<FuseMetricOperation>(n));
    return sum;
  };
  const std::uint64_t before = requests();
  for (int n = 0; n < 10; ++n)
    EXPECT_TRUE(mounted("large.bin") == wanted);
  EXPECT_EQ(requests(), before);
}

TEST_F(FuseSessionTest, ACompleteFileIsReadByTheKernelItself) {
  mount_version(FuseOpening::kPassthrough);
  const std::string wanted = source("whole.bin");
  EXPECT_TRUE(mounted("whole.bin") == wanted);
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U) << "it was not complete then";
  const File held = world.open_handed_over("whole.bin");
  const std::uint64_t reads = world.requests(FuseMetricOperation::kRead);
  EXPECT_TRUE(mounted("whole.bin") == wanted);
  EXPECT_EQ(world.connection().files.passthrough_opens(), 2U);
  EXPECT_EQ(world.requests(FuseMetricOperation::kRead), reads);
}

// Where the file system can do without them.
TEST_F(FuseSessionTest, OfWhatTheKernelReadsItselfNoAccessTimesAreKept) {
  mount_version(FuseOpening::kPassthrough);
  EXPECT_TRUE(mounted("whole.bin") == source("whole.bin"));
  const File held = world.open_handed_over("whole.bin");
  const auto flags_of = [](const std::string& path) {
    int flags = 0;
    const File file = File::open(path, O_RDONLY | O_CREAT).value();
    return ::ioctl(file.descriptor(), fuse_kernel::kGetFlags, &flags) == 0 ? flags : 0;
  };
  const std::string other = world.state.path("other");
  const File file = File::open(other, O_RDWR | O_CREAT).value();
  ::ioctl(file.descriptor(), fuse_kernel::kSetFlags, &fuse_kernel::kNoAccessTimes);
  const int wanted = flags_of(other) & fuse_kernel::kNoAccessTimes;
  int handed_over = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(world.state.path("cache"))) {
    if (entry.path().extension() == ".data") handed_over |= flags_of(entry.path());
  }
  EXPECT_EQ(handed_over & fuse_kernel::kNoAccessTimes, wanted);
}

TEST_F(FuseSessionTest, AFileThatBecomesCompleteWhileItIsOpenStaysWithUsUntilItIsClosed) {
  mount_version(FuseOpening::kPassthrough);
  const std::string wanted = source("whole.bin");
  const int held = ::open(world.mounted("whole.bin").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  EXPECT_TRUE(mounted("whole.bin") == wanted);
  EXPECT_TRUE(mounted("whole.bin") == wanted) << "complete by now, but somebody has it open";
  EXPECT_EQ(world.connection().files.passthrough_opens(), 0U);
  ::close(held);
  const File handed_over = world.open_handed_over("whole.bin");
  EXPECT_TRUE(mounted("whole.bin") == wanted);
  EXPECT_EQ(world.connection().files.passthrough_opens(), 2U);
}

TEST_F(FuseSessionTest, AliasesAndVersionsAreSeenInTheWholeTree) {
  ASSERT_TRUE(world.registry.aliases().set(world.context, dataset_of("a"), alias_of("current"),
                                           version_of("v1")));
  ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
  EXPECT_EQ(std::filesystem::read_symlink(world.mounted("datasets/a/current")), "v1");
  EXPECT_TRUE(mounted("datasets/a/current/whole.bin") == source("whole.bin"));
  struct stat found{};
  EXPECT_LT(::stat(world.mounted("datasets/b").c_str(), &found), 0);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(FuseSessionTest, ABackingWhoseRecordWasRemovedAtAKillIsClosedByTheNext) {
  mount_version(FuseOpening::kPassthrough);
  EXPECT_TRUE(mounted("whole.bin") == source("whole.bin"));
  File held = world.open_handed_over("whole.bin");
  world.end_service();
  std::int32_t lost = 0;
  {
    OpenTable opens = world.kept_opens();
    std::uint64_t unique = 0;
    opens.visit([&](const OpenTable::Record& record) {
      unique = record.unique;
      lost = record.backing;
    });
    opens.note_backing(lost + 1000);  // Many were opened since.
    ASSERT_TRUE(opens.remove(opens.find(unique).value()));
  }
  ASSERT_GT(lost, 0);
  world.take_over();
  EXPECT_FALSE(world.kept_device().close_backing(lost)) << "it is open still";
  held = File();
  expect_same_tree();
}

TEST_P(FuseOpeningTest, AnotherServiceGoesOnWhereOneWasKilled) {
  mount_version(GetParam());
  const std::string wanted = source("whole.bin");
  EXPECT_TRUE(mounted("whole.bin") == wanted);
  const int held = ::open(world.mounted("whole.bin").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(held, 0);
  world.end_service();
  // Asks while nobody serves.
  std::thread reader([&] { EXPECT_TRUE(mounted("large.bin") == source("large.bin")); });
  world.take_over();
  reader.join();
  std::string again(wanted.size(), '\0');
  EXPECT_EQ(::pread(held, again.data(), again.size(), 0), static_cast<ssize_t>(wanted.size()));
  EXPECT_TRUE(again == wanted);
  ::close(held);
  expect_same_tree();
}

}  // namespace
}  // namespace millrace
