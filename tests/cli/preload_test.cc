// Preloads, the cache's commands and usage against a real daemon in the background.
#include <signal.h>

#include <regex>
#include <string>

#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::HasSubstr;

class PreloadCommand : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    if (IsSkipped()) return;
    write("tree/train/a.bin", std::string(5 << 20, 'a'));
    write("tree/val/b.bin", std::string(5 << 20, 'b'));
    const Outcome published = millrace({"publish", path("tree"), "pets@v1"});
    ASSERT_EQ(published.exit_code, 0) << published.err;
  }
  void TearDown() override {
    if (!directory_.empty()) millrace({"stop"});
    MillraceTest::TearDown();
  }
  Outcome preload(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"preload", "pets@v1", "--json"});
    return millrace(flags);
  }
};

TEST_F(PreloadCommand, ReadyIsExitCodeZero) {
  const Outcome ready = preload({"--paths", "train/**", "--lease", "1h", "--wait"});
  ASSERT_EQ(ready.exit_code, 0) << ready.err;
  EXPECT_EQ(ready.json()["state"], "ready");
  EXPECT_EQ(ready.json()["files"], 1);
  const Outcome listed = millrace({"preload", "ls"});
  EXPECT_THAT(listed.out, HasSubstr("ready"));
  EXPECT_THAT(millrace({"cache", "ls"}).out, HasSubstr("pets@v1"));
  EXPECT_THAT(millrace({"cache", "stat"}).out, HasSubstr("leased:"));
  EXPECT_EQ(millrace({"cache", "verify"}).exit_code, 0);
  EXPECT_THAT(millrace({"usage"}).out, HasSubstr("pets@v1"));
  EXPECT_EQ(millrace({"usage", "--by", "color"}).exit_code, 2);
  EXPECT_EQ(preload({"--paths", "test/**"}).exit_code, 3);
  EXPECT_EQ(preload({"--paths", "["}).exit_code, 2);
  EXPECT_EQ(preload({"--lease", "soon"}).exit_code, 2);
  EXPECT_EQ(millrace({"preload"}).exit_code, 2);
  EXPECT_EQ(millrace({"preload", "cancel", "000000000000"}).exit_code, 3);
}

TEST_F(PreloadCommand, VerifyFindsWhatTheDiskHasChanged) {
  ASSERT_EQ(preload({"--wait"}).exit_code, 0);
  ASSERT_EQ(millrace({"stop"}).exit_code, 0);
  const Outcome changed = bash(
      "set -- $(find $DIR/home/.local/share/millrace/cache/objects -name '*.data'); test $# = 2;"
      "printf x | dd of=$1 bs=1 seek=1000000 conv=notrunc status=none");
  ASSERT_EQ(changed.exit_code, 0) << changed.err;
  ASSERT_EQ(millrace({"serve", "--background"}).exit_code, 0);
  const Outcome found = millrace({"cache", "verify", "--json"});
  EXPECT_EQ(found.exit_code, 8) << found.out << found.err;
  EXPECT_EQ(found.json()["bad_units"], 1) << found.out;
  EXPECT_EQ(millrace({"cache", "verify"}).exit_code, 0) << "what was bad is forgotten";
  EXPECT_EQ(preload({"--wait"}).exit_code, 0) << "and fetched again";
}

// The line of one that is mostly cached already tells how fast the rest of it comes.
TEST_F(PreloadCommand, TheLineOnATerminalTellsTheRateOfTheDaemon) {
  write("tree/train/cached.bin", std::string(200 << 20, 'c'));
  ASSERT_EQ(millrace({"publish", path("tree"), "pets@v2"}).exit_code, 0);
  ASSERT_EQ(millrace({"preload", "pets@v2", "--paths", "train/**", "--wait"}).exit_code, 0);
  const std::string drawn = on_terminal({"preload", "pets@v2", "--rate", "3MiB/s", "--wait"}).out;
  std::smatch rate;
  const std::regex pattern(R"((\d+)[.\d]* ([KMG]iB)/s, \d+s left)");
  ASSERT_TRUE(std::regex_search(drawn, rate, pattern)) << drawn;
  for (std::sregex_iterator it(drawn.begin(), drawn.end(), pattern), end; it != end; ++it)
    EXPECT_TRUE((*it)[2] == "KiB" || std::stoi((*it)[1]) < 50) << it->str();
}

TEST_F(PreloadCommand, SaysBeforeItStartsThatItFits) {
  variables_["MILLRACE_CACHE_SIZE"] = "64MiB";
  const Outcome started = millrace({"preload", "pets@v1"});
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_THAT(started.err, HasSubstr("all of it fits into the cache of 64 MiB"));
}

TEST_F(PreloadCommand, WhatDoesNotFitHasAnExitCodeOfItsOwn) {
  variables_["MILLRACE_CACHE_SIZE"] = "64MiB";
  write("tree/huge.bin", std::string(66 << 20, 'c'));
  ASSERT_EQ(millrace({"publish", path("tree"), "pets@v2"}).exit_code, 0);
  const Outcome refused = millrace({"preload", "pets@v2", "--wait"});
  EXPECT_EQ(refused.exit_code, 9) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("too little"));
  const Outcome part = millrace({"preload", "pets@v2", "--what-fits", "--wait", "--json"});
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_GT(part.json()["fit"]["short_bytes"], 0);
}

TEST_F(PreloadCommand, GoesOnAfterTheDaemonWasKilled) {
  const Outcome started = preload({"--rate", "1B/s", "--lease", "1h"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const std::string id = started.json()["preload"];
  const int daemon = millrace({"status", "--json"}).json()["pid"];
  ASSERT_EQ(::kill(daemon, SIGKILL), 0);
  // The next command that needs one starts another.
  const Outcome joined = preload({"--rate", "1B/s", "--lease", "1h"});
  ASSERT_EQ(joined.exit_code, 0) << joined.err;
  EXPECT_EQ(joined.json()["preload"], id);
  EXPECT_NE(millrace({"status", "--json"}).json()["pid"], daemon);
  ASSERT_EQ(millrace({"preload", "cancel", id}).exit_code, 0);
  const Outcome ready = preload({"--wait"});
  EXPECT_EQ(ready.json()["state"], "ready") << ready.err;
}

TEST_F(PreloadCommand, WhoWaitsGoesOnWithTheNextDaemon) {
  const Outcome waited = bash(R"(
    pid() { millrace status --json | grep -o '"pid":[0-9]*' | cut -d: -f2; }
    millrace preload pets@v1 --rate 1B/s --wait 2> $DIR/waiting & waiter=$!
    timeout 60 bash -c 'until grep -q "^preload .* of pets" $DIR/waiting; do :; done' || exit 90
    killed=$(pid); kill -9 $killed
    # Only who waits starts another one.
    for ((tries = 0; tries < 2000; ++tries)); do
      now=$(pid 2> /dev/null); [ -n "$now" ] && [ "$now" != "$killed" ] && break
    done
    [ -n "$now" ] && [ "$now" != "$killed" ] || exit 91
    millrace preload cancel $(grep -o '^preload [0-9a-f]*' $DIR/waiting | cut -d' ' -f2) || exit 92
    wait $waiter; echo "exit $?")");
  EXPECT_THAT(waited.out, HasSubstr("exit 6")) << waited.exit_code << waited.err;
}

TEST_F(PreloadCommand, WhoWaitsStartsNoDaemonInPlaceOfOneThatWasStopped) {
  const Outcome waited = bash(R"(
    millrace preload pets@v1 --rate 1B/s --wait 2> $DIR/waiting & waiter=$!
    timeout 60 bash -c 'until grep -q "^preload .* of pets" $DIR/waiting; do :; done' || exit 90
    millrace stop || exit 91
    wait $waiter; echo "exit $?"
    cat $DIR/waiting
    millrace status && exit 92
    exit 0)");
  EXPECT_EQ(waited.exit_code, 0) << waited.out << waited.err;
  EXPECT_THAT(waited.out, HasSubstr("exit 3"));
  EXPECT_THAT(waited.out, HasSubstr("was stopped"));
}

TEST_F(PreloadCommand, AFailureHasTheExitCodeOfItsKind) {
  // The objects are gone, the version is not.
  ASSERT_EQ(bash("find $DIR/home -path '*/store/pets/v1/*' -type f -delete").exit_code, 0);
  const Outcome failed = preload({"--wait"});
  EXPECT_EQ(failed.exit_code, 3) << failed.err;
  EXPECT_EQ(millrace({"preload", "ls", "--json"}).json()["code"], "not_found");
}

}  // namespace
}  // namespace millrace::cli
