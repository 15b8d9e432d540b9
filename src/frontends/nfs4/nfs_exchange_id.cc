#include "base/version.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_state_numbers.h"

namespace millrace {
namespace {

constexpr std::string_view kImplementationDomain = "millrace";

struct ExchangeArguments {
  NfsExchangeRequest request;
  std::uint32_t flags = 0;
  NfsStateProtect protect = NfsStateProtect::kNone;
};

ExchangeArguments read_exchange_arguments(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  ExchangeArguments arguments;
  arguments.request.owner.verifier = NfsVerifier(reader.fixed_array<8>());
  arguments.request.owner.id = reader.text(kNfsOpaqueBytesMax);
  arguments.request.principal = call.principal();
  arguments.flags = reader.u32();
  arguments.request.update = (arguments.flags & kExchangeUpdConfirmedRecA) != 0;
  arguments.protect = reader.enumeration<NfsStateProtect>();
  // What follows another protection than none is not read, since it is refused.
  if (arguments.protect != NfsStateProtect::kNone) return arguments;
  if (reader.count(1) == 1) {  // Who made the client.
    reader.text(kNfsOpaqueBytesMax);
    reader.text(kNfsOpaqueBytesMax);
    reader.i64();
    reader.u32();
  }
  return arguments;
}

NfsStatus check_exchange(const ExchangeArguments& arguments, std::uint32_t minor_version) {
  const std::uint32_t known = kExchangeMaskA | (minor_version >= 2 ? kExchangeSuppFenceOps : 0);
  if ((arguments.flags & ~known) != 0) return NfsStatus::kInval;
  switch (arguments.protect) {
    case NfsStateProtect::kNone:
      return NfsStatus::kOk;
    case NfsStateProtect::kMachineCredentials:
      return NfsStatus::kInval;  // It needs credentials that prove something.
    case NfsStateProtect::kSsv:
      return NfsStatus::kEncrAlgUnsupp;
  }
  return NfsStatus::kBadXdr;
}

}  // namespace

NfsStatus nfs_exchange_id(NfsCompound& call) {
  const ExchangeArguments arguments = read_exchange_arguments(call);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  if (const NfsStatus status = check_exchange(arguments, call.minor_version());
      status != NfsStatus::kOk)
    return status;
  NfsState& state = call.service().state;
  const NfsResult<NfsExchangeAnswer> answer = state.clients().exchange_id(arguments.request);
  if (!answer) return answer.error();

  const NfsServerOwner& owner = state.identity().owner();
  XdrWriter& writer = call.results();
  writer.u64(answer->client.value());
  writer.u32(answer->sequence);
  writer.u32(kExchangeUseNonPnfs | (answer->confirmed ? kExchangeConfirmedR : 0));
  writer.enumeration(NfsStateProtect::kNone);
  writer.u64(owner.minor_id);
  writer.text(owner.major_id);
  writer.text(owner.scope);
  writer.u32(1);
  writer.text(kImplementationDomain);
  writer.text(version());
  writer.i64(0);
  writer.u32(0);
  return NfsStatus::kOk;
}

}  // namespace millrace
