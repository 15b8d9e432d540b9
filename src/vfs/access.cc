#include "vfs/access.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {
namespace {

constexpr unsigned kReadBit = 4;
constexpr unsigned kWriteBit = 2;
constexpr unsigned kExecuteBit = 1;
constexpr unsigned kAnyExecuteBits = 0111;

unsigned bits_of(WantedAccess wanted) {
  return (wanted.read ? kReadBit : 0) | (wanted.write ? kWriteBit : 0) |
         (wanted.execute ? kExecuteBit : 0);
}

// What the permissions give to this caller.
unsigned granted_bits(unsigned permissions, NodeKind kind, const ExportPolicy& policy,
                      const Credentials& caller) {
  if (caller.uid == 0) {
    const bool may_execute = kind != NodeKind::kFile || (permissions & kAnyExecuteBits) != 0;
    return kReadBit | kWriteBit | (may_execute ? kExecuteBit : 0);
  }
  if (caller.uid == policy.uid) return permissions >> 6 & 7;
  if (caller.gid == policy.gid ||
      std::ranges::find(caller.groups, policy.gid) != caller.groups.end()) {
    return permissions >> 3 & 7;
  }
  return permissions & 7;
}

}  // namespace

std::uint16_t shown_permissions(const NodeAttributes& node, const ExportPolicy& policy) {
  if (node.kind == NodeKind::kSymlink) return node.permissions;
  return node.permissions & policy.permissions_mask;
}

Status check_access(const NodeAttributes& node, const ExportPolicy& policy,
                    const Credentials& caller, WantedAccess wanted) {
  if (wanted.write && policy.read_only) {
    return {StatusCode::kUnsupported, "what is served here can only be read"};
  }
  const unsigned permissions = shown_permissions(node, policy);
  const unsigned missing = bits_of(wanted) & ~granted_bits(permissions, node.kind, policy, caller);
  if (missing == 0) return {};
  return {
      StatusCode::kPermissionDenied,
      fmt::format("user {} may not {} this: its permissions are {:04o}, of user {} and group {}",
                  caller.uid,
                  (missing & kReadBit) != 0    ? "read"
                  : (missing & kWriteBit) != 0 ? "write"
                                               : "execute or enter",
                  permissions, policy.uid, policy.gid)};
}

}  // namespace millrace
