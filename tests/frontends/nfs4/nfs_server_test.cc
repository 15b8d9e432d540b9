#include "frontends/nfs4/nfs_server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsAnswer;
using millrace::testing::NfsAttributeValues;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::NfsListed;
using millrace::testing::NfsOpened;
using Session = millrace::testing::NfsSession;

class NfsServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("small", "hello");
    world_.tree.write("d/large", publish_bytes(3 * kMiB + 17, 1));
    world_.tree.link("link", "d/large");
    std::filesystem::permissions(world_.tree.root(), std::filesystem::perms(0700));
    ASSERT_TRUE(world_.publish("a/b@v1"));
    world_.serve();
  }
  NfsWorld world_;
};

TEST_F(NfsServerTest, ANullCallIsAnsweredAlsoWhenItAsksForTls) {
  NfsConnection connection(world_.port());
  EXPECT_EQ(connection.null().accept_status(), 0U);
  EXPECT_EQ(connection.null(7).accept_status(), 0U);
}

TEST_F(NfsServerTest, ATreeIsWalkedAndRead) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string version = session.lookup("/datasets/a/b/v1");
  std::vector<std::string> names;
  for (const NfsListed& entry :
       session.list(version, 64 * 1024, {NfsAttribute::kType, NfsAttribute::kFileId}))
    names.push_back(entry.name);
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"d", "link", "small"}));
  EXPECT_EQ(session.read_file(session.lookup("/datasets/a/b/v1/small")), "hello");
  EXPECT_EQ(session.read_file(session.lookup("/datasets/a/b/v1/d/large")),
            publish_bytes(3 * kMiB + 17, 1));
}

TEST_F(NfsServerTest, AttributesAreThoseOfTheNode) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const NfsAttributeValues file = session.attributes(
      session.lookup("/datasets/a/b/v1/small"),
      {NfsAttribute::kType, NfsAttribute::kSize, NfsAttribute::kFsid, NfsAttribute::kLeaseTime,
       NfsAttribute::kMaxRead, NfsAttribute::kMaxWrite, NfsAttribute::kOwner});
  EXPECT_EQ(file.type, NfsFileType::kRegular);
  EXPECT_EQ(file.size, 5U);
  EXPECT_EQ(file.lease_seconds, 3600U);
  EXPECT_EQ(file.read_bytes_max, kMiB);
  EXPECT_EQ(file.write_bytes_max, kMiB);
  EXPECT_EQ(file.owner, "0");
  EXPECT_NE(file.fsid_major, 0U);
}

// Listings write attributes in a way of their own.
TEST_F(NfsServerTest, ListingsShowTheAttributesThatNodesHave) {
  using enum NfsAttribute;
  const std::initializer_list<NfsAttribute> wanted = {
      kType, kSize,      kFsid,     kRdattrError, kFilehandle, kFileId,     kMaxRead,
      kMode, kSpaceUsed, kNumLinks, kOwner,       kOwnerGroup, kTimeModify, kMountedOnFileId};
  world_.tree.write("longer than the others", "hello, world");
  ASSERT_TRUE(world_.publish("a/b@v2"));
  NfsConnection connection(world_.port());
  Session session(connection, {.minor_version = 2});
  // A listing has no more than the names of versions that nobody has opened.
  session.lookup("/datasets/a/b/v1");
  session.lookup("/datasets/a/b/v2");
  std::size_t seen = 0;
  for (const char* const path : {"", "/datasets/a/b", "/datasets/a/b/v2"}) {
    for (const NfsListed& entry : session.list(session.lookup(path), 64 * 1024, wanted)) {
      EXPECT_EQ(entry.attributes, session.attributes(entry.attributes.handle, wanted))
          << path << " " << entry.name;
      ++seen;
    }
  }
  EXPECT_GE(seen, 1U + 2U + 4U);
}

TEST_F(NfsServerTest, S19AVersionIsListedWhoseManifestCannotBeHad) {
  using enum NfsAttribute;
  world_.tree.write("g", "so that its manifest is another");
  ASSERT_TRUE(world_.publish("a/b@v2"));
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string opened = session.lookup("/datasets/a/b/v1");
  const std::string directory = session.lookup("/datasets/a/b");
  world_.faulty->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  const auto list = [&](std::initializer_list<NfsAttribute> wanted) {
    std::map<std::string, NfsAttributeValues> listed;
    for (const NfsListed& entry : session.list(directory, 64 * 1024, wanted))
      listed.emplace(entry.name, entry.attributes);
    return listed;
  };
  const auto all = list({kType, kRdattrError, kFilehandle, kFileId, kMode, kTimeModify});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all.at("v1").error, NfsStatus::kOk);
  EXPECT_EQ(all.at("v1").handle, opened);
  EXPECT_EQ(all.at("v2").error, NfsStatus::kDelay);
  EXPECT_EQ(all.at("v2").type, NfsFileType::kDirectory);
  EXPECT_EQ(all.at("v2").handle, "") << "the client asks for it by its name";
  // What takes no manifest is told without one.
  const auto numbers = list({kRdattrError, kFileId, kMountedOnFileId});
  ASSERT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers.at("v2").error, NfsStatus::kOk);
  EXPECT_EQ(numbers.at("v2").file_id, all.at("v2").file_id);
  // Who does not ask for errors of entries gets one for the listing.
  EXPECT_THROW(list({kMode}), std::exception);
  world_.faulty->set_plan(no_faults());
  EXPECT_EQ(list({kMode, kFileId}).at("v2").mode, all.at("v1").mode);
  EXPECT_EQ(session.attributes(session.lookup("/datasets/a/b/v2"), {kFileId}).file_id,
            all.at("v2").file_id);
}

TEST_F(NfsServerTest, OpensOfImmutableFilesGetADelegation) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string directory = session.lookup("/datasets/a/b/v1");
  const NfsOpened opened = session.open(directory, {.name = "small"});
  EXPECT_EQ(opened.delegation, NfsDelegation::kRead);
  NfsCall call = session.call();
  call.put_fh(opened.handle).read(opened.delegation_stateid, 1, 3);
  NfsAnswer answer = session.run(call);
  answer.good(NfsOperation::kPutFh);
  XdrReader& reader = answer.good(NfsOperation::kRead);
  EXPECT_FALSE(reader.boolean());
  EXPECT_EQ(reader.text(100), "ell");
  session.close(opened.handle, opened.stateid);
}

// Delegations that could not be taken back are not given. A client may answer before the server
// looks at the time, so several try.
TEST_F(NfsServerTest, AClientThatCallbacksDoNotReachHearsOfIt) {
  world_.options.connection.callback_timeout = std::chrono::seconds(-1);
  world_.serve();
  int told = 0;
  for (int client = 0; client < 100 && told == 0; ++client) {
    NfsConnection connection(world_.port());
    Session session(connection, {.owner = "client " + std::to_string(client)});
    const std::string directory = session.lookup("/datasets/a/b/v1");
    if ((session.status_flags() & kSequenceCbPathDown) == 0) continue;
    ++told;
    EXPECT_EQ(session.open(directory, {.name = "small"}).delegation, NfsDelegation::kNone);
  }
  EXPECT_EQ(told, 1);
}

TEST_F(NfsServerTest, OneOperationAtATimeMayOnlyBeOutsideOfASession) {
  NfsConnection connection(world_.port());
  NfsCall call(1);
  call.put_root_fh();
  EXPECT_EQ(connection.run(call).status(), NfsStatus::kOpNotInSession);
  NfsCall newer(3);
  newer.put_root_fh();
  NfsAnswer answer = connection.run(newer);
  EXPECT_EQ(answer.status(), NfsStatus::kMinorVersMismatch);
  EXPECT_EQ(answer.operations(), 0U);
}

TEST_F(NfsServerTest, UnknownOperationsAreIllegalAndKnownOnesNot) {
  NfsConnection connection(world_.port());
  Session session(connection, {.minor_version = 2});
  NfsCall illegal = session.call();
  illegal.op(76);
  EXPECT_EQ(session.run(illegal).next(NfsOperation::kIllegal), NfsStatus::kOpIllegal);
  NfsCall layout = session.call();
  layout.put_root_fh().op(NfsOperation::kLayoutGet);
  EXPECT_EQ(session.run(layout).status(), NfsStatus::kNotSupp);
}

TEST_F(NfsServerTest, ForgedHandlesAreBad) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  std::string handle = session.lookup("/datasets/a/b/v1/small");
  handle[15] ^= 1;
  NfsCall call = session.call();
  call.put_fh(handle);
  EXPECT_EQ(session.run(call).next(NfsOperation::kPutFh), NfsStatus::kBadHandle);
}

// Handles, stateids of delegations apart, mean the same after a restart.
TEST_F(NfsServerTest, HandlesSurviveARestart) {
  std::string handle;
  {
    NfsConnection connection(world_.port());
    Session session(connection, {});
    handle = session.lookup("/datasets/a/b/v1/small");
  }
  world_.serve();
  NfsConnection connection(world_.port());
  Session session(connection, {});
  EXPECT_EQ(session.read_file(handle), "hello");
}

TEST_F(NfsServerTest, AnExportThatIsGoneLeavesStaleHandles) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string handle = session.lookup("/datasets/a/b/v1/small");
  ASSERT_TRUE(world_.exports.remove("/datasets").ok());
  NfsCall call = session.call();
  call.put_fh(handle);
  EXPECT_EQ(session.run(call).next(NfsOperation::kPutFh), NfsStatus::kStale);
}

// What only its owner may read, the superuser of another machine may not, unless the export says
// so.
TEST_F(NfsServerTest, TheSuperuserOfAClientIsAnybody) {
  for (const char* text : {"/v1=/datasets/a/b/v1", "/all=/datasets/a/b/v1,squash=all,anon=0:0"})
    ASSERT_TRUE(world_.exports.add(NfsExport::parse(text).value()).ok());
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string own = session.lookup("/datasets/a/b/v1");
  const std::string squashed = session.lookup("/v1");
  const std::string everybodys = session.lookup("/all");
  for (const auto& [directory, granted] :
       {std::pair(own, kNfsAccessRead | kNfsAccessLookup), std::pair(squashed, 0U),
        std::pair(everybodys, kNfsAccessRead | kNfsAccessLookup)}) {
    NfsCall call = session.call();
    call.put_fh(directory).access(kNfsAccessRead | kNfsAccessLookup | kNfsAccessModify);
    NfsAnswer answer = session.run(call);
    answer.good(NfsOperation::kPutFh);
    XdrReader& reader = answer.good(NfsOperation::kAccess);
    EXPECT_EQ(reader.u32(), kNfsAccessRead | kNfsAccessLookup | kNfsAccessModify);
    EXPECT_EQ(reader.u32(), granted);
  }
}

TEST_F(NfsServerTest, WhatIsNoCallEndsTheConnection) {
  NfsConnection connection(world_.port());
  connection.send_raw(as_bytes("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(connection.is_ended());
}

}  // namespace
}  // namespace millrace
