#include "frontends/nfs4/nfs_bitmap.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsStatus nfs_mutation(NfsCompound& call) {
  return call.current() ? NfsStatus::kRofs : NfsStatus::kNoFileHandle;
}

// Its result says which attributes were set, also when that fails.
NfsStatus nfs_setattr(NfsCompound& call) {
  call.keep_result();
  NfsBitmap().write(call.results());
  return nfs_mutation(call);
}

}  // namespace millrace
