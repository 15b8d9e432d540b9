#include "frontends/fuse/keeper_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "platform/listening_socket.h"
#include "platform/passed_files.h"
#include "tests/frontends/fuse/fuse_world.h"

namespace millrace {
namespace {

// A keeper on a thread of its own. This test is its daemon.
class KeeperProcessTest : public ::testing::Test {
 protected:
  void TearDown() override {
    daemon.close();
    if (running.joinable()) running.join();
  }
  void start(Duration alone_max = std::chrono::seconds(60), std::vector<std::string> command = {},
             std::string daemon_oom_score = "") {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    daemon = File::adopt(sockets[0], "daemon");
    running = std::thread(
        [](File listener, File connection, KeeperOptions options) {
          KeeperProcess(std::move(listener), std::move(connection), std::move(options)).run();
        },
        bind_unix_socket(path(), SOCK_SEQPACKET).value(), File::adopt(sockets[1], "keeper"),
        KeeperOptions{.socket = path(),
                      .command = std::move(command),
                      .alone_max = alone_max,
                      .daemon_oom_score = std::move(daemon_oom_score)});
  }
  std::string ask(const std::string& question, const std::vector<int>& files = {}) {
    EXPECT_TRUE(send_files(daemon.descriptor(), question, files).ok());
    return receive_files(daemon.descriptor()).value().text;
  }
  void keep_one() { keep("0:0", File::adopt(::memfd_create("device", MFD_CLOEXEC), "device")); }
  void keep(const std::string& number, const File& device) {
    const File opens = File::adopt(::memfd_create("opens", MFD_CLOEXEC), "opens");
    EXPECT_EQ(ask(R"({"do":"keep","mount":")" + number + R"(","facts":"F"})",
                  {device.descriptor(), opens.descriptor()}),
              R"({"done":"keep"})");
  }
  // While one lives, no file can be opened or received in this process.
  class NoRoomForFiles {
   public:
    NoRoomForFiles() {
      ::getrlimit(RLIMIT_NOFILE, &before_);
      const rlimit none{.rlim_cur = 3, .rlim_max = before_.rlim_max};
      ::setrlimit(RLIMIT_NOFILE, &none);
    }
    ~NoRoomForFiles() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    NoRoomForFiles(const NoRoomForFiles&) = delete;
    NoRoomForFiles& operator=(const NoRoomForFiles&) = delete;

   private:
    rlimit before_{};
  };
  std::string path() const { return directory.path("keeper.sock"); }
  bool is_there() const { return std::filesystem::exists(path()); }

  const ScratchTree directory;
  File daemon;
  std::thread running;
};

TEST_F(KeeperProcessTest, WhoLeavesFindsThePathFreeAndItsSuccessorsStays) {
  // Often, since it is a race that must not be lost.
  for (int n = 0; n < 200 && !HasFailure(); ++n) {
    start();
    EXPECT_TRUE(is_there());
    EXPECT_EQ(ask(R"({"do":"leave"})"), R"({"done":"leave"})");
    EXPECT_FALSE(is_there()) << "before the answer";
    ::unlink(path().c_str());
    const File successor = bind_unix_socket(path(), SOCK_SEQPACKET).value();
    running.join();
    EXPECT_TRUE(is_there()) << "of the successor";
    ::unlink(path().c_str());
  }
}

TEST_F(KeeperProcessTest, EndsWithADaemonThatIsKilledBeforeItsFirstWord) {
  start();
  daemon.close();
  running.join();
  EXPECT_FALSE(is_there());
}

TEST_F(KeeperProcessTest, HoldsMountsForTheNextDaemon) {
  start();
  keep_one();
  daemon.close();
  {
    FuseKeeper next = FuseKeeper::connect(path()).value();
    const std::vector<KeptMount> kept = next.kept().value();
    ASSERT_EQ(kept.size(), 1U);
    EXPECT_EQ(kept[0].number, "0:0");
    EXPECT_EQ(kept[0].facts, "F");
    EXPECT_TRUE(next.let_go("0:0").ok());
    EXPECT_FALSE(next.is_gone());
    EXPECT_TRUE(next.leave().ok());
    running.join();
    EXPECT_TRUE(next.is_gone());
    EXPECT_EQ(next.leave().code(), StatusCode::kUnavailable);
  }
  EXPECT_FALSE(is_there());
}

TEST_F(KeeperProcessTest, HoldsMountsOfADaemonThatLeavesThem) {
  start();
  keep_one();
  EXPECT_EQ(ask(R"({"do":"leave"})"), R"({"done":"leave"})");
  EXPECT_TRUE(is_there()) << "the next daemon must find it";
  daemon.close();
  FuseKeeper next = FuseKeeper::connect(path()).value();
  EXPECT_EQ(next.kept().value().size(), 1U);
  EXPECT_TRUE(next.let_go("0:0").ok());
  EXPECT_TRUE(next.leave().ok());
}

TEST_F(KeeperProcessTest, GivesUpWhenNobodyComes) {
  start(std::chrono::milliseconds(50));
  keep_one();
  daemon.close();
  running.join();
  EXPECT_FALSE(is_there());
  EXPECT_EQ(FuseKeeper::connect(path()).error().code(), StatusCode::kNotFound);
}

TEST_F(KeeperProcessTest, GivesUpOnlyWhatIsStillItsOwn) {
  // The number of a mount that has ended is another's by now.
  FuseWorld another;
  another.tree.write("a", "hello");
  ASSERT_TRUE(another.publish("a@v1"));
  ASSERT_NO_FATAL_FAILURE(another.mount("datasets/a/v1", FuseOpening::kPassthrough));
  start(std::chrono::milliseconds(50));
  keep(another.number(), File::open("/dev/fuse", O_RDWR).value());
  daemon.close();
  running.join();
  EXPECT_EQ(FuseWorld::read_file_by(another.mounted("a"), 4096), "hello");
}

TEST_F(KeeperProcessTest, RestsWhileADaemonIsSlowToCome) {
  int sockets[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
  daemon = File::adopt(sockets[0], "daemon");
  File theirs = File::adopt(sockets[1], "keeper");
  File listener = bind_unix_socket(path(), SOCK_SEQPACKET).value();
  const pid_t keeper = ::fork();
  if (keeper == 0) {
    daemon.close();
    // A second is what it may use, and it would need two if it did not rest.
    const rlimit second{.rlim_cur = 1, .rlim_max = 1};
    ::setrlimit(RLIMIT_CPU, &second);
    KeeperProcess(
        std::move(listener), std::move(theirs),
        {.socket = path(), .command = {"sleep", "4"}, .alone_max = std::chrono::milliseconds(3500)})
        .run();
    ::_exit(0);
  }
  listener.close();
  theirs.close();
  keep_one();
  daemon.close();
  int status = 0;
  ASSERT_EQ(::waitpid(keeper, &status, 0), keeper);
  EXPECT_EQ(status, 0) << "it was ended by signal " << WTERMSIG(status);
}

TEST_F(KeeperProcessTest, RestsBetweenDaemonsThatDieWhenTheyHaveCome) {
  const std::string starts = directory.path("starts");
  start(std::chrono::seconds(60),
        {"python3", "-c",
         "import socket, time\n"
         "with open('" +
             starts +
             "', 'a') as file: print(time.monotonic_ns(), file=file)\n"
             "len(open('" +
             starts +
             "').readlines()) > 4 or "
             "socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect('" +
             path() + "')"});
  keep_one();
  daemon.close();
  std::vector<std::int64_t> times_ns;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  // The fifth does not come, and only starts when the fourth has died.
  while (times_ns.size() < 5 && std::chrono::steady_clock::now() < deadline) {
    times_ns.clear();
    std::istringstream lines(read_file(starts).value_or(""));
    for (std::int64_t time_ns = 0; lines >> time_ns;)
      times_ns.push_back(time_ns);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_GE(times_ns.size(), 5U);
  // Three pauses of a second; a process that was slow to start may cut one of them short.
  EXPECT_GE(times_ns[3] - times_ns[0], std::int64_t{2'000'000'000});
  FuseKeeper last = FuseKeeper::connect(path()).value();
  EXPECT_TRUE(last.let_go("0:0").ok());
  EXPECT_TRUE(last.leave().ok());
}

// Readers of its mounts wait all the while.
TEST_F(KeeperProcessTest, GivesUpWhereDaemonsComeAndDieBeforeTheyServe) {
  for (const bool serves : {false, true}) {
    start(std::chrono::milliseconds(2500));
    keep_one();
    daemon.close();
    const TimePoint began = system_clock().now();
    while (system_clock().now() - began < std::chrono::seconds(4)) {
      Result<FuseKeeper> next = FuseKeeper::connect(path());
      const auto kept = next ? next->kept() : failure(next.error());
      if (!kept) break;  // It has ended, perhaps just now.
      EXPECT_EQ(kept->size(), 1U);
      if (serves) {
        EXPECT_TRUE(next->serve().ok());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(is_there(), serves);
    running.join();
    EXPECT_FALSE(is_there());
  }
}

TEST_F(KeeperProcessTest, WhatItStartsIsEndedForMemoryAsEarlyAsItIsTold) {
  const std::string found = directory.path("found");
  start(std::chrono::milliseconds(200),
        {"sh", "-c", "cat " + std::string(kOomScore) + " > " + found}, "321");
  keep_one();
  daemon.close();
  running.join();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (read_file(found).value_or("").empty() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(read_file(found).value_or(""), "321\n");
}

TEST_F(KeeperProcessTest, RefusesWhatItDoesNotKnow) {
  start();
  EXPECT_EQ(ask("nonsense"), R"({"error":"expected a JSON object"})");
  EXPECT_EQ(ask(R"({"do":"dance"})"), R"({"error":"unknown: dance"})");
  EXPECT_EQ(ask(R"({"do":"keep","mount":"/x"})"),
            R"({"error":"keep needs a mount and two files"})");
}

TEST_F(KeeperProcessTest, RefusesAMountThatItHasNoRoomForAndKeepsItsDaemon) {
  start();
  keep_one();
  const File device = File::adopt(::memfd_create("device", MFD_CLOEXEC), "device");
  std::string answer;
  {
    const NoRoomForFiles no_room;
    answer = ask(R"({"do":"keep","mount":"0:1","facts":"F"})",
                 {device.descriptor(), device.descriptor()});
  }
  EXPECT_NE(answer.find("error"), std::string::npos) << answer;
  keep("0:1", device);
  EXPECT_EQ(ask(R"({"do":"let_go","mount":"0:0"})"), R"({"done":"let_go"})");
  EXPECT_EQ(ask(R"({"do":"let_go","mount":"0:1"})"), R"({"done":"let_go"})");
}

TEST_F(KeeperProcessTest, ADaemonThatHasNoRoomForItsMountsDoesNotTakeTheKeeperForGone) {
  start();
  keep_one();
  daemon.close();
  {
    FuseKeeper next = FuseKeeper::connect(path()).value();
    EXPECT_TRUE(next.let_go("0:1").ok()) << "the keeper is of this process, and must accept first";
    const NoRoomForFiles no_room;
    EXPECT_EQ(next.kept().error(), StatusCode::kCorruption);
  }
  FuseKeeper last = FuseKeeper::connect(path()).value();
  EXPECT_EQ(last.kept().value().size(), 1U) << "they wait for one that can";
  EXPECT_TRUE(last.let_go("0:0").ok());
  EXPECT_TRUE(last.leave().ok());
}

}  // namespace
}  // namespace millrace
