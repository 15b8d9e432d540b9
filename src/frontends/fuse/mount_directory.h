#pragma once

#include <string>

#include "base/status.h"

namespace millrace {

// The directory of a mount as the kernel lists it: absolute, and without symlinks. What is mounted
// there is not asked, since it may be slow or dead; so the last name is looked at without going in.
// A failure says why that leads nowhere.
Result<std::string> mount_directory(const std::string& given);

// Client, daemon and keeper tell each other of a directory in JSON, which is UTF-8:
// kInvalidArgument for a path that is not.
Status check_mount_text(const std::string& directory);

}  // namespace millrace
