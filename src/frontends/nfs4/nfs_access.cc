#include "frontends/nfs4/nfs_operations.h"

namespace millrace {

NfsStatus nfs_access(NfsCompound& call) {
  const std::uint32_t asked = call.arguments().u32();
  if (!call.arguments().ok()) return NfsStatus::kBadXdr;
  const NfsResult<NfsNode> node = call.node();
  if (!node) return node.error();
  const bool is_directory = node->attributes.kind == NodeKind::kDirectory;
  const std::uint32_t known =
      kNfsAccessRead | kNfsAccessModify | kNfsAccessExtend |
      (is_directory ? kNfsAccessLookup | kNfsAccessDelete : kNfsAccessExecute);
  const auto may = [&](WantedAccess wanted) {
    return call.view().check(*node, wanted) == NfsStatus::kOk;
  };
  std::uint32_t granted = 0;
  if (may({.read = true})) granted |= kNfsAccessRead;
  if (may({.execute = true})) granted |= is_directory ? kNfsAccessLookup : kNfsAccessExecute;
  call.results().u32(asked & known);
  call.results().u32(asked & granted);
  return NfsStatus::kOk;
}

}  // namespace millrace
