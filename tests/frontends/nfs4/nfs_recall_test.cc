#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using millrace::testing::NfsOpened;
using Session = millrace::testing::NfsSession;

class NfsRecall : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("small", "hello");
    ASSERT_TRUE(world_.publish("a@v1"));
    world_.tree.write("small", "other");
    ASSERT_TRUE(world_.publish("a@v2"));
    ASSERT_TRUE(
        world_.exports.add(NfsExport::parse("/v2=/datasets/a/v2,squash=none").value()).ok());
    world_.serve();
  }
  // The callbacks of a client so far, after the server has answered it.
  static std::size_t recalls(NfsConnection& connection) {
    connection.null();
    return static_cast<std::size_t>(std::ranges::count(
        connection.callbacks(), kNfsCallbackRecallAny, &NfsConnection::Callback::operation));
  }
  NfsStatus at(Session& session, const NfsOpened& opened) {
    NfsCall call = session.call();
    call.put_fh(opened.handle).read(opened.delegation_stateid, 0, 5);
    return session.run(call).status();
  }

  NfsWorld world_;
};

TEST_F(NfsRecall, WhoHasDelegationsInAnExportIsAskedForThem) {
  NfsConnection concerned(world_.port());
  NfsConnection other(world_.port());
  Session a(concerned, {.owner = "a", .minor_version = 2});
  Session b(other, {.owner = "b"});
  ASSERT_EQ(a.open(a.lookup("/v2"), {.name = "small"}).delegation, NfsDelegation::kRead);
  ASSERT_EQ(b.open(b.lookup("/datasets/a/v2"), {.name = "small"}).delegation, NfsDelegation::kRead);
  const NfsExport removed = NfsExport::parse("/v2=/datasets/a/v2,squash=none").value();
  ASSERT_TRUE(world_.exports.remove("/v2").ok());
  world_.server().recall_export(removed);
  // CB_SEQUENCE and CB_RECALL_ANY.
  EXPECT_TRUE(concerned.wait_for_callbacks(2));
  EXPECT_EQ(recalls(other), 0U);
  // They count as given back: nobody is asked twice.
  world_.server().recall_export(removed);
  EXPECT_EQ(recalls(concerned), 1U);
}

TEST_F(NfsRecall, TheFilesOfAPurgedVersionAreStaleAndAskedFor) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const NfsOpened doomed = session.open(session.lookup("/datasets/a/v1"), {.name = "small"});
  const NfsOpened kept = session.open(session.lookup("/datasets/a/v2"), {.name = "small"});
  ASSERT_EQ(doomed.delegation, NfsDelegation::kRead);
  ASSERT_EQ(at(session, doomed), NfsStatus::kOk);
  const VersionRef ref = VersionRef::parse("a@v1").value();

  // What can be restored is still served to those who have it open.
  ASSERT_TRUE(world_.registry.remove(world_.context, ref, "a test"));
  world_.server().recall_purged_versions();
  EXPECT_EQ(at(session, doomed), NfsStatus::kOk);
  EXPECT_EQ(recalls(connection), 0U);

  ASSERT_TRUE(world_.registry.purge(world_.context, ref, true));
  world_.server().recall_purged_versions();
  EXPECT_TRUE(connection.wait_for_callbacks(2));
  EXPECT_EQ(at(session, doomed), NfsStatus::kStale);
  EXPECT_EQ(at(session, kept), NfsStatus::kOk);
}

// A registry that cannot be asked takes nothing away.
TEST_F(NfsRecall, WhileTheStoreIsAwayNothingIsRecalled) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const NfsOpened opened = session.open(session.lookup("/datasets/a/v1"), {.name = "small"});
  ASSERT_EQ(at(session, opened), NfsStatus::kOk);
  world_.faulty->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  world_.server().recall_purged_versions();
  EXPECT_EQ(at(session, opened), NfsStatus::kOk);
  EXPECT_EQ(recalls(connection), 0U);
}

}  // namespace
}  // namespace millrace
