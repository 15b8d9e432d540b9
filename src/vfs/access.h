#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "vfs/node.h"

namespace millrace {

// How a tree is shown by a front end. Manifests and buckets know no owners: the export says them.
struct ExportPolicy {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  // Permissions that are not in it are taken away from all nodes but symlinks.
  std::uint16_t permissions_mask = 07777;
  bool read_only = true;
};

// Who asks, as the kernel or the protocol tells.
struct Credentials {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::vector<std::uint32_t> groups = {};  // Besides gid.
};

// What somebody wants to do with a node; any of them together.
struct WantedAccess {
  bool read = false;
  bool write = false;
  bool execute = false;  // Of a directory: to look names up in it.
};

// The permissions that are shown, and that count.
std::uint16_t shown_permissions(const NodeAttributes& node, const ExportPolicy& policy);

// Success when POSIX allows all that is wanted: of owner, group and others the first that the
// caller is decides alone. The superuser may do anything, but for executing a file that nobody may
// execute. kPermissionDenied otherwise, and kUnsupported for writing where nothing can be written,
// whoever asks. Nothing is sent; safe from any thread.
Status check_access(const NodeAttributes& node, const ExportPolicy& policy,
                    const Credentials& caller, WantedAccess wanted);

}  // namespace millrace
