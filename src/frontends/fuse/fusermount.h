#pragma once

#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// Mounting without being root, by the program fusermount3 that the administrator trusts with it.
// Its own message is in the failure. kUnsupported when it is not installed, kPermissionDenied when
// it refuses; an unmount also has kConflict while the mount is in use, and kNotFound when there is
// none.
Result<File> fusermount(const std::string& directory, const std::string& options);
Status fusermount_unmount(const std::string& directory, bool lazy);

// Whether the administrator lets users show their mounts to others.
bool users_may_allow_other();

}  // namespace millrace
