#include <string>

#include <gtest/gtest.h>

#include "tests/frontends/nfs4/nfs_client_session.h"
#include "tests/frontends/nfs4/nfs_world.h"

namespace millrace {
namespace {

using millrace::testing::NfsAttributeValues;
using millrace::testing::NfsCall;
using millrace::testing::NfsConnection;
using Session = millrace::testing::NfsSession;

// Gateways with one registry and one key of handles.
class NfsGateways : public ::testing::Test {
 protected:
  void SetUp() override {
    world_.tree.write("file", "hello");
    ASSERT_TRUE(world_.publish("a@v1"));
    world_.tree.write("file", "other");
    ASSERT_TRUE(world_.publish("b@v1"));
    world_.options.handle_key_file = world_.state.path("handle.key");
    world_.serve();
  }
  // Another one takes over, which has served nothing yet.
  void change() {
    world_.end_service();
    world_.stop();
    ASSERT_TRUE(world_.disk().remove("/state/trees").ok());
    world_.start();
    world_.serve();
  }
  static NfsStatus put(Session& session, std::string_view handle) {
    NfsCall call = session.call();
    call.put_fh(handle);
    return session.run(call).status();
  }

  NfsWorld world_;
};

TEST_F(NfsGateways, KnowEachOthersHandles) {
  std::string handle;
  NfsAttributeValues before;
  {
    NfsConnection connection(world_.port());
    Session session(connection, {});
    handle = session.lookup("/datasets/a/v1/file");
    before = session.attributes(handle, {NfsAttribute::kFsid, NfsAttribute::kFileId});
  }
  change();
  NfsConnection connection(world_.port());
  Session session(connection, {});
  // It comes to the versions in another order.
  EXPECT_EQ(session.read_file(session.lookup("/datasets/b/v1/file")), "other");
  EXPECT_EQ(session.read_file(handle), "hello");
  EXPECT_EQ(session.lookup("/datasets/a/v1/file"), handle);
  const NfsAttributeValues after =
      session.attributes(handle, {NfsAttribute::kFsid, NfsAttribute::kFileId});
  EXPECT_EQ(after.fsid_major, before.fsid_major);
  EXPECT_EQ(after.fsid_minor, before.fsid_minor);
  EXPECT_EQ(after.file_id, before.file_id);
}

TEST_F(NfsGateways, HandlesOfWhatIsGoneAreStale) {
  std::string handle;
  {
    NfsConnection connection(world_.port());
    Session session(connection, {});
    handle = session.lookup("/datasets/a/v1/file");
  }
  const VersionRef ref = VersionRef::parse("a@v1").value();
  ASSERT_TRUE(world_.registry.remove(world_.context, ref, "a test"));
  ASSERT_TRUE(world_.registry.purge(world_.context, ref, true));
  change();
  NfsConnection connection(world_.port());
  Session session(connection, {});
  EXPECT_EQ(put(session, handle), NfsStatus::kStale);
}

// Two versions may have one number: a handle of the one must not lead to the other.
TEST_F(NfsGateways, AHandleOfAnotherVersionOfTheSameNumberIsStale) {
  NfsConnection connection(world_.port());
  Session session(connection, {});
  const std::string handle = session.lookup("/datasets/a/v1/file");
  const NfsHandles handles =
      NfsHandles::open(world_.options.handle_key_file, system_random()).value();
  NfsHandle other = handles.decode(as_bytes(handle)).value();
  EXPECT_NE(other.tree_check, 0U);
  other.tree_check ^= 1;
  EXPECT_EQ(put(session, as_text(handles.encode(other))), NfsStatus::kStale);
  other.node = NodeNumber(other.node.value() ^ (std::uint64_t{1} << 40));
  EXPECT_EQ(put(session, as_text(handles.encode(other))), NfsStatus::kStale);
}

}  // namespace
}  // namespace millrace
