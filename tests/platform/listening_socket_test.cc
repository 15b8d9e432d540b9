#include "platform/listening_socket.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace millrace {
namespace {

class ListeningSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/millrace-socket-XXXXXX";
    directory_ = ::mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name) const { return directory_ + "/" + name; }
  std::string directory_;
};

TEST_F(ListeningSocketTest, IsForItsOwnerAndTellsWhoConnects) {
  const auto socket = ListeningSocket::unix_socket(path("a/b/s"));
  ASSERT_TRUE(socket) << socket.error().to_string();
  struct stat facts{};
  ASSERT_EQ(::stat(path("a/b/s").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(path("a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  auto none = socket->accept();
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  const auto connected = connect_unix_socket(path("a/b/s"));
  ASSERT_TRUE(connected);
  const auto accepted = socket->accept();
  ASSERT_TRUE(accepted && accepted->has_value());
  EXPECT_EQ((*accepted)->principal, "uid:" + std::to_string(::getuid()));
}

TEST_F(ListeningSocketTest, NamesWhoListensAlready) {
  const auto first = ListeningSocket::unix_socket(path("s"));
  ASSERT_TRUE(first);
  const auto second = ListeningSocket::unix_socket(path("s"));
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), StatusCode::kConflict);
  EXPECT_TRUE(second.error().message().contains("process " + std::to_string(::getpid())))
      << second.error().message();
  EXPECT_TRUE(connect_unix_socket(path("s")));
}

TEST_F(ListeningSocketTest, GoesWithItsOwner) {
  {
    const auto socket = ListeningSocket::unix_socket(path("s"));
    ASSERT_TRUE(socket);
  }
  EXPECT_FALSE(std::filesystem::exists(path("s")));
  const auto nobody = connect_unix_socket(path("s"));
  ASSERT_FALSE(nobody);
  EXPECT_EQ(nobody.error().code(), StatusCode::kNotFound);
}

TEST_F(ListeningSocketTest, ReplacesWhatAKilledProcessHasLeft) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto socket = ListeningSocket::unix_socket(path("s"));
    ::_exit(socket ? 0 : 1);  // As a kill: no destructor runs.
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(std::filesystem::exists(path("s")));
  EXPECT_EQ(connect_unix_socket(path("s")).error().code(), StatusCode::kNotFound);
  EXPECT_TRUE(ListeningSocket::unix_socket(path("s")));
}

TEST_F(ListeningSocketTest, LeavesAFileAloneAndRefusesALongPath) {
  std::ofstream(path("file")) << "precious";
  const auto taken = ListeningSocket::unix_socket(path("file"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(std::filesystem::file_size(path("file")), 8U);
  const auto too_long = ListeningSocket::unix_socket(path(std::string(200, 'x')));
  ASSERT_FALSE(too_long);
  EXPECT_EQ(too_long.error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace millrace
