#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "base/status.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"
#include "vfs/access.h"

namespace millrace {

// ONC RPC version 2 (RFC 5531), and what RFC 9289 adds.

enum class RpcFlavour : std::uint32_t { kNone = 0, kSys = 1, kGss = 6, kTls = 7 };
enum class RpcMessage : std::uint32_t { kCall = 0, kReply = 1 };
enum class RpcAccepted : std::uint32_t {
  kSuccess = 0,
  kProgramUnavailable = 1,
  kProgramMismatch = 2,
  kProcedureUnavailable = 3,
  kGarbageArguments = 4,
  kSystemError = 5,
};
enum class RpcAuthFault : std::uint32_t {
  kBadCredentials = 1,
  kRejectedCredentials = 2,
  kBadVerifier = 3,
  kTooWeak = 5,
};

inline constexpr std::uint32_t kRpcVersion = 2;
inline constexpr std::size_t kRpcAuthBytesMax = 400;
inline constexpr std::uint32_t kRpcGroupsMax = 16;
inline constexpr std::size_t kRpcMachineNameBytesMax = 255;
// What answers an AUTH_TLS probe.
inline constexpr std::string_view kRpcStartTls = "STARTTLS";

// Who calls, as AUTH_NONE or AUTH_SYS say it. Nobody has checked it.
struct RpcCaller {
  RpcFlavour flavour = RpcFlavour::kNone;
  Credentials credentials{.uid = 65534, .gid = 65534};
  std::string machine;
};

struct RpcCall {
  std::uint32_t xid = 0;
  std::uint32_t program = 0;
  std::uint32_t version = 0;
  std::uint32_t procedure = 0;
  RpcCaller caller;
};

// The caller is told why there is no answer.
struct RpcRejection {
  std::uint32_t xid = 0;
  bool wrong_version = false;  // Of RPC itself; otherwise:
  RpcAuthFault fault = RpcAuthFault::kBadCredentials;
};

// Takes the head of a call; the reader then stands before the arguments. kCorruption when it is no
// call, or cut: nothing can be answered then.
Result<std::variant<RpcCall, RpcRejection>> read_rpc_call(XdrReader& reader);

// What record is this? The reader stands at its beginning, and stays there.
Result<RpcMessage> rpc_message_of(XdrReader reader);

// The head of an answer; what the procedure returns follows `kSuccess`. With `verifier` the answer
// carries that in AUTH_NONE's place.
void write_rpc_answer(XdrWriter& writer, std::uint32_t xid, RpcAccepted outcome,
                      std::string_view verifier = {});
// A program of which only one version is spoken.
void write_rpc_mismatch(XdrWriter& writer, std::uint32_t xid, std::uint32_t spoken);
void write_rpc_rejection(XdrWriter& writer, const RpcRejection& rejection);

// Calls that we make to clients.
void write_rpc_call(XdrWriter& writer, const RpcCall& call);
// The xid of an answer to us; the reader then stands before the results. A failure says that the
// client did not accept the call.
struct RpcAnswer {
  std::uint32_t xid = 0;
  Status outcome;
};
Result<RpcAnswer> read_rpc_answer(XdrReader& reader);

}  // namespace millrace
