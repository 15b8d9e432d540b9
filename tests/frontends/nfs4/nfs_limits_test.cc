#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsConnection;
using LimitsSession = millrace::testing::NfsSession;

class NfsLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("large", publish_bytes(4 * kMiB, 1));
    ASSERT_TRUE(world_.publish("d@v1"));
  }
  // Within a generous time: the server notices by itself.
  bool all_ended() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (world_.server().connections() > 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }
  // Asks for much, and takes nothing of it.
  struct Hoarder {
    NfsConnection connection;
    LimitsSession session;

    Hoarder(std::uint16_t port, std::string name)
        : connection(port), session(connection, {.owner = std::move(name), .slots = 64}) {
      const std::string file = session.lookup("/datasets/d/v1/large");
      for (std::uint32_t slot = 0; slot < 64; ++slot)
        session.send(slot, session.call(slot).put_fh(file).read({}, slot % 4 * kMiB, kMiB));
      connection.flush();
    }
  };
  bool serves() { return NfsConnection(world_.port()).null().accept_status() == 0; }

  NfsWorld world_;
};

TEST_F(NfsLimits, AClientThatNeverFinishesARecordIsCutOff) {
  world_.options.connection.record_timeout = std::chrono::milliseconds(50);
  world_.serve();
  NfsConnection silent(world_.port());
  NfsConnection slow(world_.port());
  slow.send_raw(as_bytes(std::string_view("\x80\0\0", 3)));
  EXPECT_TRUE(silent.is_ended());
  EXPECT_TRUE(slow.is_ended());
}

TEST_F(NfsLimits, AClientThatTakesNoAnswersIsCutOff) {
  world_.options.connection.send_timeout = std::chrono::milliseconds(200);
  world_.options.read_bytes_max = 8 * kMiB;
  world_.serve();
  const Hoarder hoarder(world_.port(), "hoarder");
  EXPECT_TRUE(all_ended());
  EXPECT_TRUE(serves());
}

// The memory of answers is everybody's: who takes none of them loses it to those who wait.
TEST_F(NfsLimits, ClientsThatTakeNoAnswersDoNotHoldUpOthers) {
  world_.options.read_bytes_max = 8 * kMiB;
  world_.options.connection.pressed_send_timeout = std::chrono::milliseconds(200);
  world_.serve();
  std::vector<std::unique_ptr<Hoarder>> hoarders;
  for (int i = 0; i < 16; ++i)
    hoarders.push_back(std::make_unique<Hoarder>(world_.port(), "hoarder " + std::to_string(i)));
  // Otherwise it would take a minute, which is longer than the client waits.
  NfsConnection connection(world_.port());
  LimitsSession session(connection, {});
  const std::string file = session.lookup("/datasets/d/v1/large");
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(session.read_file(file).size(), 4 * kMiB);
}

TEST_F(NfsLimits, AnOversizedRecordIsNotReceived) {
  world_.serve();
  NfsConnection connection(world_.port());
  connection.send_raw(as_bytes(std::string_view("\xff\xff\xff\xff", 4)));
  EXPECT_TRUE(connection.is_ended());
}

TEST_F(NfsLimits, RandomBytesHarmNobody) {
  world_.serve();
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    NfsConnection connection(world_.port());
    std::string bytes = publish_bytes(512, seed);
    // Half of them are records of the right length.
    if (seed % 2 == 0) bytes = std::string("\x80\0\2\0", 4) + bytes;
    connection.send_raw(as_bytes(bytes));
    connection.finish_sending();
    EXPECT_TRUE(connection.is_ended()) << seed;
  }
  EXPECT_TRUE(serves());
}

TEST_F(NfsLimits, OneConnectionTooManyIsTurnedAway) {
  world_.options.connections_max = 4;
  world_.serve();
  std::vector<std::unique_ptr<NfsConnection>> connections;
  for (int i = 0; i < 4; ++i) {
    connections.push_back(std::make_unique<NfsConnection>(world_.port()));
    EXPECT_EQ(connections.back()->null().accept_status(), 0U);
  }
  NfsConnection more(world_.port());
  EXPECT_TRUE(more.is_ended());
  EXPECT_EQ(connections.front()->null().accept_status(), 0U);
}

}  // namespace
}  // namespace millrace
