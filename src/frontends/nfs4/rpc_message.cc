#include "frontends/nfs4/rpc_message.h"

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr std::uint32_t kRpcAcceptedReply = 0;
constexpr std::uint32_t kRpcDeniedReply = 1;
constexpr std::uint32_t kRpcDeniedVersion = 0;
constexpr std::uint32_t kRpcDeniedAuth = 1;

struct RpcAuth {
  RpcFlavour flavour = RpcFlavour::kNone;
  ByteView body;
};

RpcAuth read_auth(XdrReader& reader) {
  const auto flavour = reader.enumeration<RpcFlavour>();
  return {flavour, reader.opaque(kRpcAuthBytesMax)};
}

// False when the body is not what AUTH_SYS has.
bool read_auth_sys(ByteView body, RpcCaller& caller) {
  XdrReader reader(body);
  reader.u32();  // A stamp that means nothing.
  caller.machine = reader.text(kRpcMachineNameBytesMax);
  caller.credentials.uid = reader.u32();
  caller.credentials.gid = reader.u32();
  for (std::uint32_t left = reader.count(kRpcGroupsMax); left > 0; --left)
    caller.credentials.groups.push_back(reader.u32());
  return reader.ok() && reader.remaining() == 0;
}

void write_reply_head(XdrWriter& writer, std::uint32_t xid, std::uint32_t kind) {
  writer.u32(xid);
  writer.enumeration(RpcMessage::kReply);
  writer.u32(kind);
}

}  // namespace

Result<std::variant<RpcCall, RpcRejection>> read_rpc_call(XdrReader& reader) {
  RpcCall call;
  call.xid = reader.u32();
  if (reader.enumeration<RpcMessage>() != RpcMessage::kCall) reader.fail("it is no call");
  const std::uint32_t rpc_version = reader.u32();
  call.program = reader.u32();
  call.version = reader.u32();
  call.procedure = reader.u32();
  MR_RETURN_IF_ERROR(reader.status());
  if (rpc_version != kRpcVersion) return RpcRejection{.xid = call.xid, .wrong_version = true};

  const RpcAuth credentials = read_auth(reader);
  const RpcAuth verifier = read_auth(reader);
  if (!reader.ok()) return RpcRejection{.xid = call.xid};
  call.caller.flavour = credentials.flavour;
  switch (credentials.flavour) {
    case RpcFlavour::kNone:
    case RpcFlavour::kTls:
      break;
    case RpcFlavour::kSys:
      if (read_auth_sys(credentials.body, call.caller)) break;
      return RpcRejection{.xid = call.xid};
    default:
      return RpcRejection{.xid = call.xid, .fault = RpcAuthFault::kRejectedCredentials};
  }
  if (verifier.flavour != RpcFlavour::kNone)
    return RpcRejection{.xid = call.xid, .fault = RpcAuthFault::kBadVerifier};
  return call;
}

Result<RpcMessage> rpc_message_of(XdrReader reader) {
  reader.u32();
  const auto message = reader.enumeration<RpcMessage>();
  if (message != RpcMessage::kCall && message != RpcMessage::kReply)
    reader.fail("it is neither a call nor an answer");
  MR_RETURN_IF_ERROR(reader.status());
  return message;
}

void write_rpc_answer(XdrWriter& writer, std::uint32_t xid, RpcAccepted outcome,
                      std::string_view verifier) {
  write_reply_head(writer, xid, kRpcAcceptedReply);
  writer.enumeration(RpcFlavour::kNone);
  writer.text(verifier);
  writer.enumeration(outcome);
}

void write_rpc_mismatch(XdrWriter& writer, std::uint32_t xid, std::uint32_t spoken) {
  write_rpc_answer(writer, xid, RpcAccepted::kProgramMismatch);
  writer.u32(spoken);
  writer.u32(spoken);
}

void write_rpc_rejection(XdrWriter& writer, const RpcRejection& rejection) {
  write_reply_head(writer, rejection.xid, kRpcDeniedReply);
  if (rejection.wrong_version) {
    writer.u32(kRpcDeniedVersion);
    writer.u32(kRpcVersion);
    writer.u32(kRpcVersion);
  } else {
    writer.u32(kRpcDeniedAuth);
    writer.enumeration(rejection.fault);
  }
}

void write_rpc_call(XdrWriter& writer, const RpcCall& call) {
  writer.u32(call.xid);
  writer.enumeration(RpcMessage::kCall);
  writer.u32(kRpcVersion);
  writer.u32(call.program);
  writer.u32(call.version);
  writer.u32(call.procedure);
  XdrWriter body;
  if (call.caller.flavour == RpcFlavour::kSys) {
    body.u32(0);
    body.text(call.caller.machine);
    body.u32(call.caller.credentials.uid);
    body.u32(call.caller.credentials.gid);
    body.u32(static_cast<std::uint32_t>(call.caller.credentials.groups.size()));
    for (const std::uint32_t group : call.caller.credentials.groups)
      body.u32(group);
  }
  writer.enumeration(call.caller.flavour);
  writer.opaque(body.written());
  writer.enumeration(RpcFlavour::kNone);
  writer.opaque({});
}

Result<RpcAnswer> read_rpc_answer(XdrReader& reader) {
  RpcAnswer answer;
  answer.xid = reader.u32();
  if (reader.enumeration<RpcMessage>() != RpcMessage::kReply) reader.fail("it is no answer");
  const std::uint32_t kind = reader.u32();
  if (kind != kRpcAcceptedReply) {
    MR_RETURN_IF_ERROR(reader.status());
    answer.outcome = {StatusCode::kPermissionDenied, "the client denied a call"};
    return answer;
  }
  read_auth(reader);
  const auto accepted = reader.enumeration<RpcAccepted>();
  MR_RETURN_IF_ERROR(reader.status());
  if (accepted != RpcAccepted::kSuccess) {
    answer.outcome = {StatusCode::kUnsupported, fmt::format("the client answered a call with {}",
                                                            static_cast<unsigned>(accepted))};
  }
  return answer;
}

}  // namespace millrace
