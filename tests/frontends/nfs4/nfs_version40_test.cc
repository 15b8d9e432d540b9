#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_connection.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::read_stateid;
using millrace::testing::write_stateid;

// A client of 4.0, which has no sessions.
class NfsVersion40 : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("small", "hello");
    ASSERT_TRUE(world_.publish("d@v1"));
    world_.serve();
    connection_ = std::make_unique<NfsConnection>(world_.port());
    set_client_id();
  }

  void set_client_id() {
    NfsCall call(0);
    XdrWriter& writer = call.op(NfsOperation::kSetClientId);
    writer.u64(1);
    writer.text("a client of 4.0");
    writer.u32(0x40000000);
    writer.text("tcp");
    writer.text("127.0.0.1.0.1");
    writer.u32(1);
    NfsAnswer answer = connection_->run(call);
    XdrReader& reader = answer.good(NfsOperation::kSetClientId);
    client_ = NfsClientId(reader.u64());
    const std::uint64_t confirm = reader.u64();
    NfsCall second(0);
    XdrWriter& confirmation = second.op(NfsOperation::kSetClientIdConfirm);
    confirmation.u64(client_.value());
    confirmation.u64(confirm);
    EXPECT_EQ(connection_->run(second).status(), NfsStatus::kOk);
  }
  NfsCall at_version() {
    NfsCall call(0);
    call.put_root_fh().lookup("datasets").lookup("d").lookup("v1");
    return call;
  }
  static void skip_to_version(NfsAnswer& answer) {
    answer.good(NfsOperation::kPutRootFh);
    for (int i = 0; i < 3; ++i)
      answer.good(NfsOperation::kLookup);
  }
  struct Opened {
    NfsStateid stateid;
    std::uint32_t flags = 0;
    NfsDelegation delegation = NfsDelegation::kNone;
    std::string handle;
  };
  Opened open(std::uint32_t seqid) {
    NfsCall call = at_version();
    call.open({.name = "small", .client = client_, .seqid = seqid}).get_fh();
    NfsAnswer answer = connection_->run(call);
    skip_to_version(answer);
    XdrReader& reader = answer.good(NfsOperation::kOpen);
    Opened opened;
    opened.stateid = read_stateid(reader);
    reader.fixed(20);  // What changed in the directory: nothing.
    opened.flags = reader.u32();
    for (std::uint32_t words = reader.count(8); words > 0; --words)
      reader.u32();
    opened.delegation = reader.enumeration<NfsDelegation>();
    opened.handle = answer.good(NfsOperation::kGetFh).text(kNfsHandleBytesMax);
    return opened;
  }
  NfsStatus confirm(Opened& opened, std::uint32_t seqid) {
    NfsCall call(0);
    XdrWriter& writer = call.put_fh(opened.handle).op(NfsOperation::kOpenConfirm);
    write_stateid(writer, opened.stateid);
    writer.u32(seqid);
    NfsAnswer answer = connection_->run(call);
    answer.good(NfsOperation::kPutFh);
    const NfsStatus status = answer.next(NfsOperation::kOpenConfirm);
    if (status == NfsStatus::kOk) opened.stateid = read_stateid(answer.reader());
    return status;
  }

  NfsWorld world_;
  std::unique_ptr<NfsConnection> connection_;
  NfsClientId client_;
};

TEST_F(NfsVersion40, AFileIsOpenedConfirmedReadAndClosed) {
  Opened opened = open(1);
  EXPECT_NE(opened.flags & kOpenResultConfirm, 0U);
  EXPECT_EQ(opened.delegation, NfsDelegation::kNone);
  ASSERT_EQ(confirm(opened, 2), NfsStatus::kOk);
  NfsCall call(0);
  call.put_fh(opened.handle).read(opened.stateid, 0, 100).close(opened.stateid, 3);
  NfsAnswer answer = connection_->run(call);
  answer.good(NfsOperation::kPutFh);
  XdrReader& reader = answer.good(NfsOperation::kRead);
  EXPECT_TRUE(reader.boolean());
  EXPECT_EQ(reader.text(100), "hello");
  answer.good(NfsOperation::kClose);
}

// A retry gets the same answer, with the same file handle for what follows; another number none.
TEST_F(NfsVersion40, WhatAClientDoesIsCounted) {
  Opened opened = open(1);
  ASSERT_EQ(confirm(opened, 2), NfsStatus::kOk);
  NfsCall call(0);
  call.put_fh(opened.handle).read(opened.stateid, 0, 100);
  ASSERT_EQ(connection_->run(call).status(), NfsStatus::kOk);
  const std::vector<NfsClientInfo> clients = world_.server().state().list_clients();
  ASSERT_EQ(clients.size(), 1U);
  EXPECT_FALSE(clients[0].has_sessions);
  // Six to open, two to confirm, two to read.
  EXPECT_EQ(clients[0].operations, 10U);
  EXPECT_EQ(clients[0].read_bytes, 5U);
}

TEST_F(NfsVersion40, ARetryIsAnsweredAsTheFirstTime) {
  Opened confirmed = open(1);
  ASSERT_EQ(confirm(confirmed, 2), NfsStatus::kOk);
  const Opened first = open(3);
  const Opened again = open(3);
  EXPECT_EQ(first.flags & kOpenResultConfirm, 0U);
  EXPECT_EQ(again.stateid, first.stateid);
  EXPECT_EQ(again.handle, first.handle);
  NfsCall call(0);
  call.put_fh(first.handle).close(first.stateid, 9);
  EXPECT_EQ(connection_->run(call).status(), NfsStatus::kBadSeqid);
}

// What is refused for its arguments was an operation of its owner all the same.
TEST_F(NfsVersion40, ARefusedOperationTakesItsNumber) {
  Opened opened = open(1);
  ASSERT_EQ(confirm(opened, 2), NfsStatus::kOk);
  NfsCall refused = at_version();
  refused.open({.name = "small", .access = 0, .client = client_, .seqid = 3});
  EXPECT_EQ(connection_->run(refused).status(), NfsStatus::kInval);
  NfsCall call(0);
  call.put_fh(opened.handle).close(opened.stateid, 4);
  EXPECT_EQ(connection_->run(call).status(), NfsStatus::kOk);
}

TEST_F(NfsVersion40, ClientsThatNobodyKnowsAreStale) {
  NfsCall call(0);
  call.op(NfsOperation::kRenew).u64(client_.value());
  EXPECT_EQ(connection_->run(call).status(), NfsStatus::kOk);
  NfsCall unknown(0);
  unknown.op(NfsOperation::kRenew).u64(client_.value() + 77);
  EXPECT_EQ(connection_->run(unknown).status(), NfsStatus::kStaleClientId);
}

TEST_F(NfsVersion40, OperationsOfLaterVersionsAreIllegal) {
  NfsCall call(0);
  call.op(NfsOperation::kExchangeId);
  EXPECT_EQ(connection_->run(call).status(), NfsStatus::kOpIllegal);
}

}  // namespace
}  // namespace millrace
