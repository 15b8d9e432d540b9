#pragma once

#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace millrace {

struct FuseMountRequest {
  std::string source;     // As `mount` lists it: "millrace:imagenet@v2".
  std::string directory;  // Absolute.
  // Other users may look, as far as modes let them. Root's mounts always do it.
  bool allow_other = false;
};

// Mounts, and returns the device to serve it by. As root by the kernel's own call, else by
// fusermount3. Nothing is answered until the device is served.
//
// Dead mounts are taken away first.
//
// kNotFound when the directory or /dev/fuse is missing, kPermissionDenied when we may not,
// kConflict when a dead mount of somebody else is there; each message says what to do.
Result<File> mount_fuse(const FuseMountRequest& request);

// Takes mounts of ours away that nobody serves any more; only a kill of both the daemon and the
// keeper leaves one. False when there was none, kConflict when one of somebody else's is there.
Result<bool> remove_dead_mounts(const std::string& directory);

// Whether the topmost mount on a directory is one of ours, served or not.
bool is_fuse_mount(const std::string& directory);

// kConflict while somebody uses it, or when something else is mounted over it; kNotFound when
// nothing is mounted there. `lazy` takes it out of
// sight at once, and ends it when its last user is gone.
Status unmount_fuse(const std::string& directory, bool lazy);
// What it says then.
Status mount_in_use(const std::string& directory);
Status nothing_mounted(const std::string& directory);

// Nothing on the mount can be run as a program any more. Only root may; kPermissionDenied for
// others.
Status forbid_execution(const std::string& directory);

// Lets the kernel read ahead as far as a request may be long. Only root may; otherwise reads come
// in pieces of 128 KiB, which costs some speed and nothing else.
void raise_readahead(const std::string& directory);

}  // namespace millrace
