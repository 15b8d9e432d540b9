#include "platform/file.h"

#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "platform/file_error.h"
#include "platform/path.h"

namespace millrace {
namespace {

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string pattern = ::testing::TempDir() + "millrace-file-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~FileTest() override { std::filesystem::remove_all(root_); }
  std::string path(std::string_view name) const { return join_path(root_, name); }
  std::size_t file_count() const {
    return std::distance(std::filesystem::directory_iterator(root_), {});
  }
  std::string root_;
};

TEST_F(FileTest, MovingLeavesOneOwner) {
  File a = File::open(path("a"), O_RDWR | O_CREAT).value();
  const int descriptor = a.descriptor();
  File b = std::move(a);
  EXPECT_FALSE(a.is_open());
  EXPECT_EQ(b.descriptor(), descriptor);
  b = File();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
}

TEST_F(FileTest, DescriptorsAreNotInherited) {
  const File a = File::open(path("a"), O_RDWR | O_CREAT).value();
  EXPECT_EQ(::fcntl(a.descriptor(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

TEST_F(FileTest, ErrorsCarryCodePathAndReason) {
  const Status status = File::open(path("no"), O_RDONLY).error();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "cannot open '" + path("no") + "': No such file or directory");
  EXPECT_EQ(file_error_code(EACCES), StatusCode::kPermissionDenied);
  EXPECT_EQ(file_error_code(EPERM), StatusCode::kPermissionDenied);
  EXPECT_EQ(file_error_code(EDQUOT), StatusCode::kResourceExhausted);
  EXPECT_EQ(file_error_code(EROFS), StatusCode::kIoError);
}

TEST_F(FileTest, RefusesOffsetsThatNoFileHas) {
  const File a = File::open(path("a"), O_RDWR | O_CREAT).value();
  EXPECT_EQ(a.write_at(UINT64_MAX - 1, as_bytes("xxx")).code(), StatusCode::kInvalidArgument);
  std::byte byte{};
  EXPECT_EQ(a.read_at(UINT64_MAX, {&byte, 1}).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(FileTest, AtomicWriteReplacesWhole) {
  ASSERT_TRUE(write_file_atomically(path("a"), as_bytes("one")).ok());
  ASSERT_TRUE(write_file_atomically(path("a"), as_bytes("two")).ok());
  EXPECT_EQ(read_file(path("a")).value(), "two");
  EXPECT_EQ(file_count(), 1u);
  EXPECT_EQ(write_file_atomically(path("no/a"), as_bytes("x")).code(), StatusCode::kNotFound);
}

TEST_F(FileTest, AFullDiskLeavesTheOldFile) {
  ASSERT_TRUE(write_file_atomically(path("a"), as_bytes("old")).ok());
  const auto previous = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = write_file_atomically(path("a"), as_bytes(std::string(200'000, 'x')));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, previous);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(read_file(path("a")).value(), "old");
  EXPECT_EQ(file_count(), 1u);
}

TEST_F(FileTest, ReadFileHasALimit) {
  ASSERT_TRUE(write_file_atomically(path("a"), as_bytes(std::string(70'000, 'x'))).ok());
  EXPECT_EQ(read_file(path("a"), 70'000).value().size(), 70'000u);
  EXPECT_EQ(read_file(path("a"), 69'999).error().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(read_file("/proc/self/status").value(), ::testing::HasSubstr("Pid:"));
}

TEST(Path, PartsAndWholes) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
  EXPECT_EQ(parent_path("a/b"), "a");
  EXPECT_EQ(parent_path("a//b/"), "a");
  EXPECT_EQ(parent_path("a"), ".");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
  EXPECT_EQ(base_name("a/b/"), "b");
  EXPECT_EQ(base_name("a"), "a");
}

}  // namespace
}  // namespace millrace
