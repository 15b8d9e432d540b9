// `millrace serve` as a real process, and the commands that talk to it.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"
#include "tests/servers/child_process.h"
#include "tests/servers/test_tls.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;
using millrace::testing::TestTls;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience{60};

class ServeCommand : public MillraceTest {
 protected:
  void TearDown() override {
    // Those in the background outlive whoever started them.
    if (!directory_.empty()) millrace({"stop"});
    MillraceTest::TearDown();
  }

  std::unique_ptr<ChildProcess> start(const std::vector<std::string>& flags = {}) {
    std::vector<std::string> command = {"/usr/bin/env", "-i"};
    for (const auto& [name, value] : variables_)
      command.push_back(name + "=" + value);
    command.insert(command.end(), {program_, "serve"});
    command.insert(command.end(), flags.begin(), flags.end());
    log_ = path("serve-" + std::to_string(++started_) + ".log");
    return std::make_unique<ChildProcess>(
        command, millrace::testing::ChildOptions{.output_file = log_, .environment = {}});
  }
  // What the daemon that was started last has said.
  std::string said() const { return read(log_.substr(directory_.size() + 1)); }
  // Waits for a text in its log; false when it ends before.
  bool says(ChildProcess& daemon, const std::string& text) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!said().contains(text)) {
      const bool ended = daemon.wait(std::chrono::milliseconds(10)).has_value();
      if (ended || std::chrono::steady_clock::now() > deadline) return said().contains(text);
    }
    return true;
  }
  std::unique_ptr<ChildProcess> start_ready(const std::vector<std::string>& flags = {}) {
    auto daemon = start(flags);
    EXPECT_TRUE(says(*daemon, "ready: process")) << said();
    return daemon;
  }
  std::string socket() const { return path("home/.local/share/millrace/millrace.sock"); }

  std::string log_;
  int started_ = 0;
};

TEST_F(ServeCommand, StartsWithNothingConfiguredAndEndsByASignal) {
  const auto daemon = start_ready();
  EXPECT_THAT(said(),
              HasSubstr("ready: process " + std::to_string(daemon->pid()) + " at " + socket()));
  struct stat facts{};
  ASSERT_EQ(::stat(socket().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0600U);
  const auto status = millrace({"status", "--json"}).json();
  EXPECT_EQ(status["pid"], daemon->pid());
  EXPECT_EQ(status["socket"], socket());
  const Outcome shown = millrace({"status"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, AllOf(HasSubstr("process " + std::to_string(daemon->pid())),
                               HasSubstr("/store"), HasSubstr("/cache: ")));
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait(kPatience), 0) << said();
  EXPECT_FALSE(std::filesystem::exists(socket()));
  const Outcome gone = millrace({"status"});
  EXPECT_EQ(gone.exit_code, 3);
  EXPECT_THAT(gone.err, HasSubstr("no daemon runs at '" + socket() + "'"));
}

TEST_F(ServeCommand, LogsLinesOfJsonWhenAskedTo) {
  const auto daemon = start_ready({"--log-format", "json"});
  daemon->signal(SIGTERM);
  EXPECT_EQ(daemon->wait(kPatience), 0) << said();
  std::istringstream lines(said());
  int logged = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with('{')) continue;  // What it says to people: where it is.
    const auto fields = nlohmann::json::parse(line, nullptr, false);
    ASSERT_TRUE(fields.is_object()) << line;
    EXPECT_TRUE(fields.contains("level") && fields.contains("message")) << line;
    ++logged;
  }
  EXPECT_GT(logged, 0) << said();
}

TEST_F(ServeCommand, SeesWhatCommandsPublish) {
  const auto daemon = start_ready();
  write("pets/a", "cat");
  ASSERT_EQ(millrace({"publish", "pets", "pets@v1"}).exit_code, 0);
  const Outcome asked = bash("curl -sS --unix-socket '" + socket() + "' http://d/v1/datasets");
  EXPECT_EQ(asked.json(), nlohmann::json::parse(R"({"datasets":[{"dataset":"pets"}]})"));
  const Outcome metrics = bash("curl -sS --unix-socket '" + socket() + "' http://d/metrics");
  EXPECT_THAT(metrics.out, HasSubstr("millrace_cache_limit_bytes"));
}

TEST_F(ServeCommand, RefusesASecondOneOnTheSameCacheAndNamesTheFirst) {
  const auto first = start_ready();
  const auto second = start({"--socket", path("other.sock")});
  EXPECT_EQ(second->wait(kPatience), 6) << said();
  EXPECT_THAT(said(), AllOf(HasSubstr("process " + std::to_string(first->pid()) + " on "),
                            HasSubstr("since 20"), HasSubstr(socket()),
                            HasSubstr("'millrace stop'"), HasSubstr("--cache and --socket")));
  EXPECT_EQ(millrace({"status", "--json"}).json()["pid"], first->pid());
}

TEST_F(ServeCommand, StartsAtOnceAfterAKill) {
  for (int i = 0; i < 3; ++i) {
    const auto daemon = start_ready();
    EXPECT_EQ(millrace({"status", "--json"}).json()["pid"], daemon->pid());
    daemon->signal(SIGKILL);
    EXPECT_EQ(daemon->wait(kPatience), 128 + SIGKILL);
    EXPECT_EQ(millrace({"status"}).exit_code, 3);
  }
}

TEST_F(ServeCommand, IgnoresAHangUpAndSaysSo) {
  const auto daemon = start_ready();
  daemon->signal(SIGHUP);
  EXPECT_TRUE(says(*daemon, "a hang-up is ignored")) << said();
  EXPECT_EQ(millrace({"status"}).exit_code, 0);
}

TEST_F(ServeCommand, StopEndsItAndWaitsUntilItHasLetGo) {
  for (int i = 0; i < 3; ++i) {
    const auto daemon = start_ready();
    const Outcome stopped = millrace({"stop", "--json"});
    EXPECT_EQ(stopped.exit_code, 0) << stopped.err;
    EXPECT_EQ(stopped.json()["pid"], daemon->pid());
    EXPECT_EQ(daemon->wait(std::chrono::milliseconds(0)), 0) << said();
  }
  EXPECT_EQ(millrace({"stop"}).exit_code, 3);
}

TEST_F(ServeCommand, ChecksTheConfigAndNamesFileAndLine) {
  const Outcome none = millrace({"serve", "--check-config"});
  EXPECT_EQ(none.exit_code, 0) << none.err;
  write("good.yaml", "cache_size: 10GiB\n");
  const Outcome good = millrace({"serve", "--check-config", "--config", path("good.yaml")});
  EXPECT_EQ(good.exit_code, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good.yaml"));
  write("bad.yaml", "memory_max: 1GiB\ncache_size: lots\n");
  const Outcome bad = millrace({"serve", "--check-config", "--config", path("bad.yaml")});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.yaml:2: cache_size: 'lots'"));
  const Outcome key = millrace({"serve", "--check-config", "--cache-key-file", path("no.key")});
  EXPECT_EQ(key.exit_code, 3);
  EXPECT_THAT(key.err, HasSubstr("no.key"));
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(ServeCommand, ChecksWhatTheSettingsReferTo) {
  const auto refused = [this](const std::string& setting, const std::string& value) {
    write("bad.yaml", setting + ": " + value + "\n");
    const Outcome outcome = millrace({"serve", "--check-config", "--config", path("bad.yaml")});
    EXPECT_NE(outcome.exit_code, 0) << setting << ": " << value;
    EXPECT_THAT(outcome.err, HasSubstr(setting + ": "));
    // A start says the same.
    const Outcome started = millrace({"serve", "--config", path("bad.yaml")});
    EXPECT_EQ(started.exit_code, outcome.exit_code) << started.err;
    EXPECT_THAT(started.err, HasSubstr(setting + ": "));
    return outcome.err;
  };
  EXPECT_THAT(refused("buckets", "live=file:///does/not/exist"), HasSubstr("'live'"));
  EXPECT_THAT(refused("store", "file:///does/not/exist"), HasSubstr("/does/not/exist"));
  EXPECT_THAT(refused("cache", "/proc/nope"), HasSubstr("/proc/nope"));
  EXPECT_THAT(refused("cache", "millrace/cache"), HasSubstr("not absolute"));
  // Looking leaves nothing behind.
  EXPECT_EQ(millrace({"serve", "--check-config", "--cache", path("a/b")}).exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

TEST_F(ServeCommand, SaysWhenTheCacheIsTooLongAPathForMounts) {
  const auto cache = [this](std::size_t bytes) {
    return path("") + std::string(bytes - path("").size(), 'c');
  };
  const Outcome longest = millrace({"serve", "--check-config", "--cache", cache(95), "--json"});
  EXPECT_EQ(longest.json()["no_mounts"], nullptr);
  const Outcome longer = millrace({"serve", "--check-config", "--cache", cache(96)});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_THAT(longer.out, HasSubstr("but nothing can be mounted with this 'cache'"));
  EXPECT_THAT(longer.out, HasSubstr("keeper.sock' cannot be a socket"));
  const Outcome json = millrace({"serve", "--check-config", "--cache", cache(96), "--json"});
  EXPECT_TRUE(json.json()["good"]);
  EXPECT_THAT(json.json()["no_mounts"], HasSubstr("set a shorter one"));
  // A daemon says the same to who mounts, and serves the rest.
  const Outcome mount = bash("mkdir $DIR/mnt; millrace --cache " + cache(96) + " mount $DIR/mnt");
  EXPECT_NE(mount.exit_code, 0);
  EXPECT_THAT(mount.err, HasSubstr("set a shorter one"));
  EXPECT_EQ(millrace({"status"}).exit_code, 0);
  EXPECT_EQ(millrace({"stop"}).exit_code, 0);
}

TEST_F(ServeCommand, ChecksTheFilesOfTlsAsAStartWould) {
  const TestTls certificates;
  write("server.pem", certificates.server().certificate_pem);
  write("server.key", certificates.server().key_pem);
  const std::string good = path("server.pem");
  const auto check = [this](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"serve", "--check-config", "--nfs", "127.0.0.1:0"});
    return millrace(flags);
  };
  const auto refused = [&](const std::vector<std::string>& flags) {
    const Outcome outcome = check(flags);
    EXPECT_EQ(outcome.exit_code, 2);
    return outcome.err;
  };
  const std::string key = path("server.key");
  EXPECT_EQ(check({"--nfs-tls-certificate", good, "--nfs-tls-key", key}).exit_code, 0);
  EXPECT_THAT(refused({"--nfs-tls-certificate", path("no.pem"), "--nfs-tls-key", key}),
              HasSubstr("no.pem"));
  EXPECT_THAT(refused({"--nfs-tls-certificate", good}), HasSubstr("go together"));
  EXPECT_THAT(refused({"--nfs-tls-certificate", good, "--nfs-tls-key", key, "--exports",
                       "/datasets,sec=mtls"}),
              HasSubstr("nfs_tls_client_ca"));
}

TEST_F(ServeCommand, StartsOneInTheBackgroundHoweverManyAskForIt) {
  const Outcome started = bash(
      "for i in 1 2 3 4 5; do millrace serve --background & pids=\"$pids $!\"; done;"
      "for pid in $pids; do wait $pid || exit 1; done; millrace status --json");
  EXPECT_EQ(started.exit_code, 0) << started.err;
  const auto pid = started.json()["pid"];
  EXPECT_EQ(millrace({"serve", "--background"}).exit_code, 0);
  EXPECT_EQ(millrace({"status", "--json"}).json()["pid"], pid);
  const std::string log = read("home/.local/share/millrace/serve.log");
  EXPECT_EQ(log.find("ready: process"), log.rfind("ready: process")) << log;
}

TEST_F(ServeCommand, TheLogOfOneInTheBackgroundIsBounded) {
  const std::string log = "home/.local/share/millrace/serve.log";
  const auto grow = [&](char c) {
    std::ofstream(path(log), std::ios::app) << std::string(17 << 20, c) << std::flush;
  };
  std::filesystem::create_directories(path("home/.local/share/millrace"));
  grow('a');
  const Outcome started = millrace({"serve", "--background"});
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_TRUE(read(log + ".1") == std::string(16 << 20, 'a'));
  EXPECT_FALSE(read(log).contains("aaaa")) << "what this one says";
  grow('b');
  // It looks now and then, and whenever it is woken.
  const pid_t pid = millrace({"status", "--json"}).json()["pid"];
  EXPECT_EQ(::kill(pid, SIGHUP), 0);
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (std::filesystem::file_size(path(log)) > (16 << 20) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  EXPECT_LT(read(log).size(), 1U << 20);
  EXPECT_TRUE(read(log + ".1").contains("bbbb"));
}

TEST_F(ServeCommand, RefusesToListenInTheForegroundOnly) {
  const Outcome refused = millrace({"serve", "--listening"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("give both, or neither"));
}

TEST_F(ServeCommand, ReturnsWhenItListensWhateverTheStoreDoes) {
  variables_["AWS_ACCESS_KEY_ID"] = "a";
  variables_["AWS_SECRET_ACCESS_KEY"] = "b";
  variables_["MILLRACE_STORE"] = "s3://bucket?endpoint=http://127.0.0.1:1";  // Nobody is there.
  const Outcome started = millrace({"serve", "--background", "--listening"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  EXPECT_EQ(millrace({"status", "--json"}).json()["store"]["answers"], false);
}

TEST_F(ServeCommand, GivesTheDaemonInTheBackgroundTheFlagsOfTheCommand) {
  const Outcome started =
      millrace({"serve", "--background", "--cache-size", "100MiB", "--store", path("elsewhere")});
  // Only the embedded store is made when it is absent.
  EXPECT_EQ(started.exit_code, 1);
  EXPECT_THAT(started.err, AllOf(HasSubstr("the daemon ended while it started"),
                                 HasSubstr("serve.log"), HasSubstr("elsewhere")));
  std::filesystem::create_directories(path("elsewhere"));
  ASSERT_EQ(
      millrace({"serve", "--background", "--cache-size", "100MiB", "--store", path("elsewhere")})
          .exit_code,
      0);
  const auto status = millrace({"status", "--json"}).json();
  EXPECT_EQ(status["cache"]["limit_bytes"], 100 << 20);
  EXPECT_THAT(status["store"]["url"], HasSubstr("elsewhere"));
}

}  // namespace
}  // namespace millrace::cli
