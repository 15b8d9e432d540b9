#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_open_arguments.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

constexpr std::size_t kStateidBytes = 16;

}  // namespace

NfsStatus nfs_test_stateid(NfsCompound& call) {
  XdrReader& reader = call.arguments();
  const std::uint32_t count = reader.count(kNfsTestedStateidsMax, kStateidBytes);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  const NfsClientFiles& files = call.slot()->session().client().files();
  call.results().u32(count);
  for (std::uint32_t i = 0; i < count; ++i)
    call.results().enumeration(files.test(read_nfs_stateid(reader)));
  return NfsStatus::kOk;
}

NfsStatus nfs_free_stateid(NfsCompound& call) {
  const NfsStateid sent = read_nfs_stateid(call.arguments());
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsStateid> stateid = call.meant(sent);
  return stateid ? call.slot()->session().client().files().free(*stateid) : stateid.error();
}

}  // namespace millrace
