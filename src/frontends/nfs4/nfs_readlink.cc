#include "frontends/nfs4/nfs_operations.h"
#include "frontends/nfs4/nfs_status.h"

namespace millrace {

NfsStatus nfs_readlink(NfsCompound& call) {
  const NfsResult<NfsNode> node = call.node();
  if (!node) return node.error();
  if (node->attributes.kind != NodeKind::kSymlink)
    return call.minor_version() == 0 ? NfsStatus::kInval : NfsStatus::kWrongType;
  const Result<std::string> target =
      call.service().files.read_link(call.context(), node->place.node);
  if (!target) return nfs_status_of(target.error(), NfsAttempt::kNode);
  call.results().text(*target);
  return NfsStatus::kOk;
}

}  // namespace millrace
