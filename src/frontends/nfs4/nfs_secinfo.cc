#include "frontends/nfs4/nfs_lookup.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

constexpr std::uint32_t kSecInfoStyleCurrent = 0;
constexpr std::uint32_t kSecInfoStyleParent = 1;

void write_flavours(XdrWriter& writer, const NfsPlace& place) {
  const bool sys = place.exported == nullptr || place.exported->allows_sys;
  const bool none = place.exported == nullptr || place.exported->allows_none;
  writer.u32((sys ? 1 : 0) + (none ? 1 : 0));
  if (sys) writer.enumeration(RpcFlavour::kSys);
  if (none) writer.enumeration(RpcFlavour::kNone);
}

// 4.1 takes the file handle away, so that nobody goes on with what he asked about.
NfsStatus end_secinfo(NfsCompound& call, const NfsPlace& place) {
  write_flavours(call.results(), place);
  if (call.minor_version() > 0) call.current().reset();
  return NfsStatus::kOk;
}

}  // namespace

NfsStatus nfs_secinfo(NfsCompound& call) {
  const std::string_view name = call.arguments().text(kNfsLinkBytesMax);
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsPlace> child = find_nfs_child(call, name);
  return child ? end_secinfo(call, *child) : child.error();
}

NfsStatus nfs_secinfo_no_name(NfsCompound& call) {
  const std::uint32_t style = call.arguments().u32();
  if (!call.arguments().ok() || style > kSecInfoStyleParent) return NfsStatus::kBadXdr;
  NfsResult<NfsPlace> place = call.place();
  if (place && style != kSecInfoStyleCurrent) place = call.view().parent(call.context(), *place);
  return place ? end_secinfo(call, *place) : place.error();
}

}  // namespace millrace
