#include "frontends/nfs4/nfs_bitmap.h"
#include "frontends/nfs4/nfs_operations.h"

namespace millrace {
namespace {

constexpr std::uint32_t kDirDelegationUnavailable = 1;

}  // namespace

// New Linux clients send this for every directory. They take "not now" well, and an error badly.
NfsStatus nfs_get_dir_delegation(NfsCompound& call) {
  const NfsResult<NfsNode> node = call.node();
  if (!node) return node.error();
  XdrReader& reader = call.arguments();
  reader.boolean();  // Whether we may say later that there is one.
  NfsBitmap::read(reader);
  reader.fixed(2 * 12);  // How long notifications may be late, of children and of itself.
  NfsBitmap::read(reader);
  NfsBitmap::read(reader);
  if (!reader.ok()) return NfsStatus::kBadXdr;
  if (node->attributes.kind != NodeKind::kDirectory) return NfsStatus::kNotDir;
  call.results().u32(kDirDelegationUnavailable);
  call.results().boolean(false);  // And no signal will come.
  return NfsStatus::kOk;
}

}  // namespace millrace
