#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "frontends/fuse/mount_table.h"
#include "platform/file.h"

namespace millrace {

struct FuseMountRequest {
  std::string source;     // As `mount` lists it: "millrace:imagenet@v2".
  std::string directory;  // Absolute.
  // Other users may look, as far as modes let them. Root's mounts always do it.
  bool allow_other = false;
  bool noexec = false;
};

struct MadeFuse {
  File device;         // To serve it by.
  std::string number;  // Of the file system, by which it is found again (mount_table.h).
  File unplaced;       // By which it comes to its directory; not open when it is there already.
};

// Makes the file system of a mount. Nothing is answered until the device is served.
//
// As root it is nowhere yet, and ends with what is returned, so that a kill before place_fuse()
// leaves nothing. For others fusermount3 puts it in its place at once, and so do kernels before
// 5.2.
//
// Dead mounts are taken away from the directory first.
//
// kNotFound when the directory or /dev/fuse is missing, kPermissionDenied when we may not,
// kConflict when a mount of millrace is there, or a dead one of somebody else; each message says
// what to do.
Result<MadeFuse> make_fuse(const FuseMountRequest& request);

// Shows it at the directory that it was made for. What it was not shown by then is gone when this
// fails.
Status place_fuse(MadeFuse& made, const std::string& directory);

// Takes mounts of ours away that nobody serves any more; only a kill of both the daemon and the
// keeper leaves one. False when there was none, kConflict when one of somebody else's is there.
Result<bool> remove_dead_mounts(const std::string& directory);

// kConflict while somebody uses it, or when something else is mounted over it; kNotFound when it is
// not there any more. `lazy` takes it out of sight at once, and ends it when its last user is gone.
Status unmount_fuse(const ListedMount& mount, bool lazy);
// Takes a file system of ours out of sight wherever it is. The first failure, when there is one;
// success when it is nowhere.
Status detach_fuse(std::string_view number);
// What it says then.
Status mount_in_use(const std::string& directory);
Status nothing_mounted(const std::string& directory);

// Lets the kernel read ahead as far as a request may be long, on a file system. Only root may;
// otherwise reads come in pieces of 128 KiB, which costs some speed and nothing else.
void raise_readahead(const std::string& number);

}  // namespace millrace
