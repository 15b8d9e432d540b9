#pragma once

#include <string_view>

#include "base/status.h"

namespace millrace {

// What callers can do about an errno of the file system: ENOENT is kNotFound, EACCES and EPERM are
// kPermissionDenied, EEXIST and ENOTEMPTY are kConflict (somebody was faster), and what a limit
// causes (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE) is kResourceExhausted. All else is kIoError.
StatusCode file_error_code(int error);

// "cannot <action> '<path>': No space left on device", with the code above.
Status file_error(int error, std::string_view action, std::string_view path);

}  // namespace millrace
