#pragma once

#include "base/status.h"

namespace millrace {

// Whether this process can hand files to the kernel, so that reads of complete files pass us by.
// kUnsupported when the kernel cannot, kPermissionDenied when we may not; the message says why.
Status passthrough_support();

}  // namespace millrace
