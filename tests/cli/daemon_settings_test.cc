// Commands whose settings are not those of the daemon that runs.
#include <filesystem>

#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Two stores with a version of one name, and a daemon of the first, which is the default.
class DaemonSettings : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directories(path("other"));
    std::filesystem::create_directories(path("mnt"));
    write("one/a", "one");
    write("two/a", "two");
    ASSERT_EQ(millrace({"publish", path("one"), "z@v1"}).exit_code, 0);
    ASSERT_EQ(millrace({"--store", path("other"), "publish", path("two"), "z@v1"}).exit_code, 0);
    ASSERT_EQ(millrace({"serve", "--background"}).exit_code, 0);
  }
  void TearDown() override {
    if (!directory_.empty()) bash("millrace umount --lazy $DIR/mnt; millrace stop");
    MillraceTest::TearDown();
  }

  // Names the setting, both values and what to do, and does nothing.
  void expect_refused(const std::vector<std::string>& arguments, const std::string& setting,
                      const std::string& served, const std::string& given) {
    const Outcome outcome = millrace(arguments);
    EXPECT_EQ(outcome.exit_code, 6) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.err,
                AllOf(HasSubstr("runs with " + setting + " " + served), HasSubstr("says " + given),
                      HasSubstr("--socket"), HasSubstr("millrace stop")));
    EXPECT_EQ(outcome.out, "");
  }
  std::string own_store() const { return "file://" + path("home/.local/share/millrace/store"); }
  std::string other_store() const { return "file://" + path("other"); }
};

TEST_F(DaemonSettings, AnotherStoreIsRefusedByEveryCommandThatWouldUseTheDaemons) {
  const std::vector<std::vector<std::string>> commands = {
      {"mount", "z@v1", path("mnt")},
      {"preload", "z@v1", "--wait"},
      {"preload", "ls"},
      {"preload", "cancel", "000000000000"},
      {"cache", "ls"},
      {"cache", "stat"},
      {"cache", "verify", "z@v1"},
      {"cache", "drop", "z@v1"},
      {"usage"},
      {"export", "add", "/z", "z@v1"},
      {"export", "ls"},
      {"export", "rm", "/z"},
      {"serve", "--background"},
  };
  for (std::vector<std::string> command : commands) {
    SCOPED_TRACE(command.front() + " " + command.back());
    command.insert(command.begin(), {"--store", other_store()});
    expect_refused(command, "store", own_store(), other_store());
  }
  EXPECT_NE(bash("mountpoint -q $DIR/mnt").exit_code, 0);
}

TEST_F(DaemonSettings, AnotherStoreOfTheEnvironmentAFileOrAMountOptionIsRefusedToo) {
  write("other.yaml", "store: " + other_store() + "\n");
  expect_refused({"--config", path("other.yaml"), "preload", "z@v1"}, "store", own_store(),
                 other_store());
  const Outcome helper = bash(
      "ln -s \"$(command -v millrace)\" $DIR/mount.millrace; $DIR/mount.millrace z@v1 $DIR/mnt "
      "-o ro,store=file://$DIR/other");
  EXPECT_EQ(helper.exit_code, 6) << helper.err;
  EXPECT_THAT(helper.err, HasSubstr("--store says " + other_store()));
  variables_["MILLRACE_STORE"] = other_store();
  const Outcome variable = millrace({"preload", "z@v1"});
  EXPECT_EQ(variable.exit_code, 6) << variable.err;
  EXPECT_THAT(variable.err, HasSubstr("MILLRACE_STORE says " + other_store()));
  // They are about the daemon itself.
  EXPECT_EQ(millrace({"status"}).exit_code, 0);
}

TEST_F(DaemonSettings, AnyOtherThatTheDaemonServesWithIsRefused) {
  expect_refused({"--cache", path("elsewhere"), "preload", "z@v1"}, "cache",
                 path("home/.local/share/millrace/cache"), path("elsewhere"));
  expect_refused({"--require-version", "true", "preload", "z@v1"}, "require_version", "false",
                 "true");
  expect_refused({"--buckets", "b=" + other_store(), "preload", "z@v1"}, "buckets", "none",
                 "b=" + other_store());
}

TEST_F(DaemonSettings, TheSameInOtherWordsAndWhatAProcessHasForItselfPass) {
  const Outcome same = bash(
      "cd $DIR/home && millrace --store ./.local/share/../share/millrace/store/ --cache "
      "$DIR/home/.local/share/millrace/../millrace/cache/ --cache-size 80.0% --buckets none "
      "--exports /datasets --log-level error --timeout 1m --memory-max 1GiB preload z@v1 "
      "--wait");
  EXPECT_EQ(same.exit_code, 0) << same.err;
}

TEST_F(DaemonSettings, ADaemonBesideItServesTheOtherStore) {
  variables_["MILLRACE_SOCKET"] = path("other.sock");
  variables_["MILLRACE_CACHE"] = path("other.cache");
  variables_["MILLRACE_STORE"] = other_store();
  EXPECT_EQ(millrace({"preload", "z@v1", "--wait"}).exit_code, 0);
  EXPECT_EQ(millrace({"status", "--json"}).json()["settings"]["store"], other_store());
  EXPECT_EQ(millrace({"stop"}).exit_code, 0);
  variables_.erase("MILLRACE_SOCKET");
  EXPECT_EQ(millrace({"status", "--json"}).json()["settings"]["store"], own_store());
}

}  // namespace
}  // namespace millrace::cli
