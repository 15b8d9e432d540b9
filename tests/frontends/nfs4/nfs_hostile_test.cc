// Clients that do not keep to the protocol, and many at once: they lose their connection, and
// nobody else notices.
#include <sys/resource.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using HonestSession = millrace::testing::NfsSession;

constexpr std::uint32_t kWholeRecord = 0x80000000;

std::vector<std::byte> marked(std::uint32_t mark, std::size_t bytes = 0) {
  XdrWriter writer;
  writer.u32(mark);
  std::vector<std::byte> record(writer.written().begin(), writer.written().end());
  record.resize(record.size() + bytes);
  return record;
}

class NfsHostileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("small", "hello");
    world_.tree.write("large", publish_bytes(kMiB, 1));
    ASSERT_TRUE(world_.publish("a@v1"));
  }
  void TearDown() override { expect_service(); }

  // Somebody who behaves is served.
  void expect_service() {
    NfsConnection connection(world_.port());
    HonestSession session(connection, {.owner = "honest"});
    EXPECT_EQ(session.read_file(session.lookup("/datasets/a/v1/small")), "hello");
    session.destroy();
  }
  // Counted a moment after the client sees it.
  bool becomes_ended(NfsMetricEnd why, std::uint64_t count) {
    const TimePoint deadline = system_clock().now() + std::chrono::seconds(30);
    while (ended(why) != count && system_clock().now() < deadline) {
    }
    return ended(why) == count;
  }
  std::uint64_t ended(NfsMetricEnd why) {
    return world_.metrics()
        .counter(MetricId::kNfsConnectionsEnded, {static_cast<std::size_t>(why)})
        .value();
  }

  NfsWorld world_;
};

TEST_F(NfsHostileTest, RecordsThatNeverEndAreCutOff) {
  world_.options.connection.record_timeout = std::chrono::milliseconds(100);
  world_.serve();
  NfsConnection silent(world_.port());
  NfsConnection slow(world_.port());
  slow.null();
  slow.send_raw(marked(kWholeRecord | 100, 10));
  NfsConnection half_a_mark(world_.port());
  half_a_mark.send_raw(as_bytes("\x80"));
  EXPECT_TRUE(silent.is_ended());
  EXPECT_TRUE(slow.is_ended());
  EXPECT_TRUE(half_a_mark.is_ended());
  EXPECT_TRUE(becomes_ended(NfsMetricEnd::kStalled, 3));
}

TEST_F(NfsHostileTest, WhoDoesNotTakeTheRepliesIsCutOff) {
  world_.options.connection.send_timeout = std::chrono::milliseconds(100);
  world_.serve();
  NfsConnection connection(world_.port());
  const int small = 4096;
  ::setsockopt(connection.descriptor(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
  HonestSession session(connection, {});
  const std::string large = session.lookup("/datasets/a/v1/large");
  for (std::uint32_t slot = 0; slot < session.slots(); ++slot)
    session.send(slot, session.call(slot).put_fh(large).read({}, 0, kNfsReadBytesMax));
  connection.flush();
  const TimePoint deadline = system_clock().now() + std::chrono::seconds(30);
  while (ended(NfsMetricEnd::kStalled) == 0 && system_clock().now() < deadline)
    expect_service();
  EXPECT_TRUE(becomes_ended(NfsMetricEnd::kStalled, 1));
}

TEST_F(NfsHostileTest, RecordsThatAreTooLargeOrInTooManyPiecesAreRefused) {
  world_.serve();
  for (const std::uint32_t mark :
       {kWholeRecord | (kNfsRecordBytesMax + 1), 0xffffffffU, 0x7fffffffU}) {
    NfsConnection connection(world_.port());
    connection.send_raw(marked(mark, 100));
    EXPECT_TRUE(connection.is_ended()) << mark;
  }
  NfsConnection pieces(world_.port());
  for (int i = 0; i < 1000 && pieces.send_raw(marked(0)); ++i) {
  }
  EXPECT_TRUE(pieces.is_ended());
  NfsConnection together(world_.port());
  for (int i = 0;
       i < 3 && together.send_raw(marked(kNfsRecordBytesMax / 2, kNfsRecordBytesMax / 2)); ++i) {
  }
  EXPECT_TRUE(together.is_ended());
  EXPECT_TRUE(becomes_ended(NfsMetricEnd::kMalformed, 5));
}

TEST_F(NfsHostileTest, ARecordInPiecesIsOneRecord) {
  world_.serve();
  NfsConnection connection(world_.port());
  NfsCall call(1);
  call.put_root_fh();
  const std::vector<std::byte> record = call.record(7);
  for (std::size_t i = 4; i < record.size(); i += 16) {
    const std::size_t size = std::min<std::size_t>(16, record.size() - i);
    const bool is_last = i + size == record.size();
    auto piece = marked((is_last ? kWholeRecord : 0) | static_cast<std::uint32_t>(size));
    piece.insert(piece.end(), record.begin() + static_cast<std::ptrdiff_t>(i),
                 record.begin() + static_cast<std::ptrdiff_t>(i + size));
    connection.send_raw(piece);
  }
  auto answer = connection.receive();
  EXPECT_EQ(answer.xid(), 7U);
  EXPECT_EQ(answer.status(), NfsStatus::kOpNotInSession);
}

TEST_F(NfsHostileTest, WhoEndsItsHalfStillGetsTheAnswers) {
  world_.serve();
  NfsConnection connection(world_.port());
  NfsCall call(1);
  call.put_root_fh();
  for (int i = 0; i < 10; ++i)
    connection.send(call);
  connection.flush();
  connection.finish_sending();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(connection.receive().status(), NfsStatus::kOpNotInSession);
  EXPECT_TRUE(connection.is_ended());
}

TEST_F(NfsHostileTest, CountsThatDoNotFitAreRefused) {
  world_.serve();
  NfsConnection connection(world_.port());
  HonestSession session(connection, {});
  NfsCall more = session.call();
  more.put_root_fh();
  more.set_operations(5);
  EXPECT_EQ(connection.run(more).status(), NfsStatus::kBadXdr);
  NfsCall many = session.call();
  for (std::uint32_t i = 0; i <= kNfsOperationsMax; ++i)
    many.put_root_fh();
  EXPECT_EQ(connection.run(many).status(), NfsStatus::kTooManyOps);
  NfsCall huge(1);
  huge.put_root_fh();
  huge.set_operations(0xffffffff);
  EXPECT_NE(connection.run(huge).status(), NfsStatus::kOk);
}

TEST_F(NfsHostileTest, RandomBytesHarmNobody) {
  world_.serve();
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(seed);
  SeededRandom random(seed);
  NfsCall good(0);
  good.put_root_fh()
      .lookup("datasets")
      .get_fh()
      .get_attr({NfsAttribute::kType, NfsAttribute::kSize});
  const std::vector<std::byte> record = good.record(1);
  const auto rounds = torture_rounds(10000, kSanitized ? 50 : 300);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    NfsConnection connection(world_.port());
    std::vector<std::byte> bytes = record;
    const auto any = [&](std::uint64_t below) { return random.next() % below; };
    switch (round % 3) {
      case 0:  // Nothing of it fits.
        for (std::byte& byte : bytes)
          byte = static_cast<std::byte>(random.next());
        break;
      case 1:  // The record is one, what is in it is not.
        for (std::size_t i = 4 + any(60); i < bytes.size(); ++i)
          bytes[i] = static_cast<std::byte>(random.next());
        break;
      default:  // Nearly right.
        for (std::uint64_t flips = 1 + any(4); flips > 0; --flips)
          bytes[4 + any(bytes.size() - 4)] ^= static_cast<std::byte>(1U << any(8));
    }
    connection.send_raw(bytes);
    connection.finish_sending();
    EXPECT_TRUE(connection.is_ended()) << "round " << round;
  }
}

TEST_F(NfsHostileTest, ThereAreNoMoreConnectionsThanAllowed) {
  world_.options.connections_max = 4;
  world_.serve();
  {
    std::vector<std::unique_ptr<NfsConnection>> connections;
    for (int i = 0; i < 4; ++i) {
      connections.push_back(std::make_unique<NfsConnection>(world_.port()));
      connections.back()->null();
    }
    NfsConnection refused(world_.port());
    EXPECT_TRUE(refused.is_ended());
    EXPECT_TRUE(becomes_ended(NfsMetricEnd::kRefused, 1));
    EXPECT_EQ(connections[0]->null().accept_status(), 0U);
  }
  const TimePoint deadline = system_clock().now() + std::chrono::seconds(30);
  while (world_.server().connections() > 0 && system_clock().now() < deadline) {
  }
}

TEST_F(NfsHostileTest, IdleConnectionsDisturbNobody) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  // Both ends are this process's.
  const std::size_t most = files.rlim_cur > 1000 ? (files.rlim_cur - 1000) / 2 : 0;
  const std::size_t count = std::min<std::size_t>(torture_rounds(10000, 1000), most);
  world_.serve();
  std::vector<std::unique_ptr<NfsConnection>> connections;
  for (std::size_t i = 0; i < count; ++i) {
    connections.push_back(std::make_unique<NfsConnection>(world_.port()));
    connections.back()->null();
  }
  EXPECT_EQ(world_.server().connections(), count);
  expect_service();
  for (const auto& connection : connections)
    EXPECT_EQ(connection->null().accept_status(), 0U);
}

}  // namespace
}  // namespace millrace
