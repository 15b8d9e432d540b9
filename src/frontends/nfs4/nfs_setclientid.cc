#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_turn.h"

namespace millrace {
namespace {

constexpr std::size_t kUniversalAddressBytesMax = 256;

}  // namespace

NfsStatus nfs_setclientid(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  NfsClientOwner owner;
  owner.verifier = NfsVerifier(reader.fixed_array<8>());
  owner.id = reader.text(kNfsOpaqueBytesMax);
  // Where it wants to be called: nobody calls clients of 4.0.
  reader.u32();
  reader.text(kUniversalAddressBytesMax);
  reader.text(kUniversalAddressBytesMax);
  reader.u32();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsSetClientIdAnswer> answer =
      call.service().state.clients40().set_client_id(owner, call.principal());
  if (!answer) {
    if (answer.error() == NfsStatus::kClidInUse) {
      // By whom is nobody's business.
      call.keep_result();
      call.results().text("");
      call.results().text("");
    }
    return answer.error();
  }
  call.results().u64(answer->client.value());
  call.results().fixed(answer->confirm.value());
  return NfsStatus::kOk;
}

NfsStatus nfs_setclientid_confirm(NfsCompound& call) {
  const NfsClientId client(call.arguments().u64());
  const NfsVerifier confirm(call.arguments().fixed_array<8>());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  return call.service().state.clients40().confirm(client, confirm, call.principal());
}

NfsStatus nfs_renew(NfsCompound& call) {
  const NfsClientId client(call.arguments().u64());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const auto found = client_of(call, client);
  return found ? NfsStatus::kOk : found.error();
}

NfsStatus nfs_release_lockowner(NfsCompound& call) {
  const NfsClientId client(call.arguments().u64());
  const std::string owner(call.arguments().text(kNfsOpaqueBytesMax));
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const auto found = client_of(call, client);
  return found ? (*found)->turns().release_lock_owner(owner) : found.error();
}

}  // namespace millrace
