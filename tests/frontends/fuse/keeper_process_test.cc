#include "frontends/fuse/keeper_process.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "platform/listening_socket.h"
#include "platform/passed_files.h"
#include "tests/dataset/publish_world.h"

namespace millrace {
namespace {

// A keeper on a thread of its own. This test is its daemon.
class KeeperProcessTest : public ::testing::Test {
 protected:
  void TearDown() override {
    daemon.close();
    if (running.joinable()) running.join();
  }
  void start(Duration alone_max = std::chrono::seconds(60)) {
    int sockets[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    daemon = File::adopt(sockets[0], "daemon");
    running = std::thread(
        [this, alone_max](File listener, File connection) {
          KeeperProcess(std::move(listener), std::move(connection),
                        {.socket = path(), .command = {}, .alone_max = alone_max})
              .run();
        },
        bind_unix_socket(path(), SOCK_SEQPACKET).value(), File::adopt(sockets[1], "keeper"));
  }
  std::string ask(const std::string& question, const std::vector<int>& files = {}) {
    EXPECT_TRUE(send_files(daemon.descriptor(), question, files).ok());
    return receive_files(daemon.descriptor()).value().text;
  }
  void keep_one() {
    const File device = File::adopt(::memfd_create("device", MFD_CLOEXEC), "device");
    const File opens = File::adopt(::memfd_create("opens", MFD_CLOEXEC), "opens");
    EXPECT_EQ(ask(R"({"do":"keep","mount":"0:0","facts":"F"})",
                  {device.descriptor(), opens.descriptor()}),
              R"({"done":"keep"})");
  }
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

TEST_F(KeeperProcessTest, RefusesWhatItDoesNotKnow) {
  start();
  EXPECT_EQ(ask("nonsense"), R"({"error":"expected a JSON object"})");
  EXPECT_EQ(ask(R"({"do":"dance"})"), R"({"error":"unknown: dance"})");
  EXPECT_EQ(ask(R"({"do":"keep","mount":"/x"})"),
            R"({"error":"keep needs a mount and two files"})");
}

}  // namespace
}  // namespace millrace
