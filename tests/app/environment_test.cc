#include "app/environment.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using ::testing::HasSubstr;

EnvironmentLookup environment_of(std::map<std::string, std::string> variables) {
  return [variables](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(UserDirectoriesTest, WithoutHomeTheListOfUsersSaysWhereFilesBelong) {
  const UserDirectories said = user_directories(environment_of({{"HOME", "/h"}}), "/listed");
  EXPECT_EQ(said.data, "/h/.local/share/millrace");
  EXPECT_EQ(said.substitute, "");
  const UserDirectories listed = user_directories(environment_of({{"HOME", "here"}}), "/listed");
  EXPECT_EQ(listed.data, "/listed/.local/share/millrace");
  EXPECT_EQ(listed.config, "/listed/.config/millrace");
  EXPECT_EQ(listed.substitute, "");
}

TEST(UserDirectoriesTest, AUserWithoutAHomeHasASubstituteToBeClaimed) {
  const UserDirectories none = user_directories(environment_of({}), "");
  EXPECT_EQ(none.substitute, fmt::format("/tmp/millrace-{}", ::geteuid()));
  EXPECT_EQ(none.data, none.substitute + "/.local/share/millrace");
}

class ClaimDirectoryTest : public ::testing::Test {
 protected:
  ClaimDirectoryTest() {
    char name[] = "/tmp/millrace-environment-XXXXXX";
    scratch_ = ::mkdtemp(name);
    path_ = scratch_ + "/home";
  }
  ~ClaimDirectoryTest() override { std::filesystem::remove_all(scratch_); }

  void expect_refused() {
    const Status status = claim_directory(path_);
    EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
    EXPECT_THAT(status.message(), HasSubstr("set HOME"));
  }

  std::string scratch_;
  std::string path_;
};

TEST_F(ClaimDirectoryTest, MakesOneThatOnlyTheUserCanLookInto) {
  const mode_t before = ::umask(0);
  EXPECT_TRUE(claim_directory(path_).ok());
  ::umask(before);
  struct stat facts{};
  ASSERT_EQ(::stat(path_.c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0700U);
  EXPECT_TRUE(claim_directory(path_).ok()) << "the user's own, from before";
}

TEST_F(ClaimDirectoryTest, RefusesOneThatOthersMayLookInto) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  expect_refused();
}

TEST_F(ClaimDirectoryTest, RefusesASymlink) {
  ASSERT_EQ(::mkdir((scratch_ + "/other").c_str(), 0700), 0);
  ASSERT_EQ(::symlink("other", path_.c_str()), 0);
  expect_refused();
}

TEST_F(ClaimDirectoryTest, RefusesWhatIsSomebodyElses) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(::chown(path_.c_str(), 12345, 12345), 0);
  expect_refused();
}

}  // namespace
}  // namespace millrace
