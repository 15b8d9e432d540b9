#pragma once

#include "app/application.h"
#include "base/status.h"

namespace millrace {

// Whether what the application's settings refer to is there and can be used, as a start of the
// daemon would find it: stores that are directories, the cache's directory, key files. Stores on
// the network are not asked. The failure names the setting. Leaves nothing behind but what
// `missing` has it make. Blocks.
Status check_settings(Application& application, MissingRoot missing);

}  // namespace millrace
