#include "frontends/nfs4/nfs_client.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsStatus nfs_reclaim_complete(NfsCompound& call) {
  const bool one_file_system = call.arguments().boolean();
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  // Nothing ever moves here, so there is nothing to say about one alone.
  if (one_file_system) return call.current() ? NfsStatus::kOk : NfsStatus::kNoFileHandle;
  return call.slot()->session().client().complete_reclaim();
}

}  // namespace millrace
