#include "frontends/nfs4/rpc_message.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

RpcCall sample_call() {
  return {.xid = 77,
          .program = 100003,
          .version = 4,
          .procedure = 1,
          .caller = {.flavour = RpcFlavour::kSys,
                     .credentials = {.uid = 1000, .gid = 100, .groups = {4, 24}},
                     .machine = "node7"}};
}

TEST(RpcMessage, AuthSysSaysWhoCalls) {
  XdrWriter writer;
  write_rpc_call(writer, sample_call());
  writer.u32(4711);
  XdrReader reader(writer.written());
  EXPECT_EQ(rpc_message_of(reader).value(), RpcMessage::kCall);
  const auto read = read_rpc_call(reader);
  ASSERT_TRUE(read.has_value());
  const auto& call = std::get<RpcCall>(*read);
  EXPECT_EQ(call.xid, 77U);
  EXPECT_EQ(call.caller.machine, "node7");
  EXPECT_EQ(call.caller.credentials.uid, 1000U);
  EXPECT_EQ(call.caller.credentials.groups, (std::vector<std::uint32_t>{4, 24}));
  EXPECT_EQ(reader.u32(), 4711U);
}

// Nothing that is cut is taken for a call.
TEST(RpcMessage, EveryCutIsRejected) {
  XdrWriter writer;
  write_rpc_call(writer, sample_call());
  for (std::size_t size = 0; size < writer.written().size(); ++size) {
    XdrReader reader(writer.written().first(size));
    const auto read = read_rpc_call(reader);
    EXPECT_TRUE(!read || std::holds_alternative<RpcRejection>(*read)) << size;
  }
}

TEST(RpcMessage, OtherVersionsAndFlavoursAreRejected) {
  XdrWriter gss;
  RpcCall call = sample_call();
  call.caller.flavour = RpcFlavour::kGss;
  write_rpc_call(gss, call);
  XdrReader gss_reader(gss.written());
  const auto rejected = read_rpc_call(gss_reader);
  ASSERT_TRUE(rejected.has_value());
  EXPECT_EQ(std::get<RpcRejection>(*rejected).fault, RpcAuthFault::kRejectedCredentials);

  XdrWriter old;
  old.u32(1);
  old.enumeration(RpcMessage::kCall);
  old.u32(1);  // The version of RPC.
  for (int i = 0; i < 7; ++i)
    old.u32(0);
  XdrReader old_reader(old.written());
  const auto mismatch = read_rpc_call(old_reader);
  ASSERT_TRUE(mismatch.has_value());
  EXPECT_TRUE(std::get<RpcRejection>(*mismatch).wrong_version);
}

TEST(RpcMessage, TooManyGroupsAreNoCredentials) {
  XdrWriter writer;
  RpcCall call = sample_call();
  call.caller.credentials.groups.assign(kRpcGroupsMax + 1, 5);
  write_rpc_call(writer, call);
  XdrReader reader(writer.written());
  const auto read = read_rpc_call(reader);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(std::get<RpcRejection>(*read).fault, RpcAuthFault::kBadCredentials);
}

TEST(RpcMessage, AnswersAreRead) {
  XdrWriter good;
  write_rpc_answer(good, 5, RpcAccepted::kSuccess);
  XdrReader good_reader(good.written());
  const auto answer = read_rpc_answer(good_reader);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->xid, 5U);
  EXPECT_TRUE(answer->outcome.ok());

  XdrWriter denied;
  write_rpc_rejection(denied, {.xid = 6, .fault = RpcAuthFault::kTooWeak});
  XdrReader denied_reader(denied.written());
  const auto denial = read_rpc_answer(denied_reader);
  ASSERT_TRUE(denial.has_value());
  EXPECT_EQ(denial->xid, 6U);
  EXPECT_FALSE(denial->outcome.ok());
}

}  // namespace
}  // namespace millrace
