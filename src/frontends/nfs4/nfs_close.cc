#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

// The end of operations that change a stateid: it is the answer, and the current one.
NfsStatus answer_stateid(NfsCompound& call, const NfsResult<NfsStateid>& changed) {
  if (!changed) return changed.error();
  call.current()->stateid = *changed;
  write_nfs_stateid(call.results(), *changed);
  return NfsStatus::kOk;
}

NfsClientFiles& files_of(NfsCompound& call) { return call.slot()->session().client().files(); }

}  // namespace

NfsStatus nfs_close(NfsCompound& call) {
  call.arguments().u32();  // The number of 4.0.
  const NfsStateid sent = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  return answer_stateid(call, files_of(call).close(*stateid, place->node));
}

NfsStatus nfs_open_downgrade(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const NfsStateid sent = read_nfs_stateid(reader);
  reader.u32();  // The number of 4.0.
  NfsShare share;
  share.access = reader.u32() &
                 ~(kShareWantMask | kShareWantSignalWhenAvailable | kShareWantPushWhenUncontended);
  share.deny = reader.u32();
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  if (share.none() || share.access > kShareAccessBoth || share.deny > kShareDenyBoth)
    return NfsStatus::kInval;
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  return answer_stateid(call, files_of(call).downgrade(*stateid, place->node, share));
}

NfsStatus nfs_delegreturn(NfsCompound& call) {
  const NfsStateid sent = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> place = call.place();
  if (!place) return place.error();
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  if (!stateid) return stateid.error();
  return files_of(call).return_delegation(*stateid, place->node);
}

NfsStatus nfs_free_stateid(NfsCompound& call) {
  const NfsStateid sent = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  return stateid ? files_of(call).free(*stateid) : stateid.error();
}

NfsStatus nfs_test_stateid(NfsCompound& call) {
  constexpr std::size_t kStateidBytes = 16;
  XdrReader& reader = call.arguments();
  const std::uint32_t count = reader.count(kNfsTestedStateidsMax, kStateidBytes);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  call.results().u32(count);
  for (std::uint32_t i = 0; i < count; ++i)
    call.results().enumeration(files_of(call).test(read_nfs_stateid(reader)));
  return NfsStatus::kOk;
}

}  // namespace millrace
