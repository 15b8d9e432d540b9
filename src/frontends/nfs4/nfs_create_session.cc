#include "frontends/nfs4/nfs_callback.h"
#include "frontends/nfs4/nfs_channel.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_state_numbers.h"

namespace millrace {

NfsChannelAttributes read_nfs_channel(XdrReader& reader) {
  NfsChannelAttributes channel;
  channel.header_pad_bytes = reader.u32();
  channel.request_bytes_max = reader.u32();
  channel.response_bytes_max = reader.u32();
  channel.cached_response_bytes_max = reader.u32();
  channel.operations_max = reader.u32();
  channel.requests_max = reader.u32();
  for (std::uint32_t left = reader.count(1); left > 0; --left)
    reader.u32();  // Of RDMA.
  return channel;
}

void write_nfs_channel(XdrWriter& writer, const NfsChannelAttributes& channel) {
  writer.u32(channel.header_pad_bytes);
  writer.u32(channel.request_bytes_max);
  writer.u32(channel.response_bytes_max);
  writer.u32(channel.cached_response_bytes_max);
  writer.u32(channel.operations_max);
  writer.u32(channel.requests_max);
  writer.u32(0);
}

void skip_nfs_callback_security(XdrReader& reader) {
  constexpr std::uint32_t kWaysMax = 16;
  for (std::uint32_t left = reader.count(kWaysMax); left > 0; --left) {
    switch (reader.enumeration<RpcFlavour>()) {
      case RpcFlavour::kNone:
        break;
      case RpcFlavour::kSys:
        reader.u32();
        reader.text(kRpcMachineNameBytesMax);
        reader.u32();
        reader.u32();
        for (std::uint32_t groups = reader.count(kRpcGroupsMax); groups > 0; --groups)
          reader.u32();
        break;
      case RpcFlavour::kGss:
        reader.u32();
        reader.opaque(kRpcAuthBytesMax);
        reader.opaque(kRpcAuthBytesMax);
        break;
      default:
        reader.fail("callbacks are to have credentials that do not exist");
    }
  }
}

NfsStatus nfs_create_session(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  NfsCreateSessionRequest request;
  request.client = NfsClientId(reader.u64());
  request.sequence = reader.u32();
  request.flags = reader.u32();
  request.fore = read_nfs_channel(reader);
  request.back = read_nfs_channel(reader);
  request.callback_program = reader.u32();
  request.minor_version = call.minor_version();
  skip_nfs_callback_security(reader);
  request.principal = call.principal();
  request.connection = call.connection().id();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsCreateSessionAnswer> answer =
      call.service().state.clients().create_session(request);
  if (!answer) return answer.error();
  if ((answer->flags & kSessionBackChannel) != 0) {
    const auto session = call.service().state.sessions().find(answer->session);
    if (session != nullptr) probe_nfs_callbacks(call, session);
  }
  XdrWriter& writer = call.results();
  writer.fixed(answer->session.value());
  writer.u32(answer->sequence);
  writer.u32(answer->flags);
  write_nfs_channel(writer, answer->fore);
  write_nfs_channel(writer, answer->back);
  return NfsStatus::kOk;
}

NfsStatus nfs_backchannel_ctl(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const std::uint32_t program = reader.u32();
  skip_nfs_callback_security(reader);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  // Callbacks go on with the program that the session began with.
  const bool same = program == call.slot()->session().terms().callback_program;
  return same ? NfsStatus::kOk : NfsStatus::kNotSupp;
}

}  // namespace millrace
