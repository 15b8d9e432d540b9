#pragma once

#include <string>

#include "app/settings.h"
#include "base/request_context.h"
#include "base/status.h"

namespace millrace {

// Starts the daemon of these settings in the background, and returns when it is ready; nothing when
// one runs. `program` is the millrace program; empty: $MILLRACE_BIN, one beside this library or in
// its "bin", one in the path. kUnavailable says what was tried, and how it ended. Blocks.
Status start_daemon(const RequestContext& context, const LoadedSettings& settings,
                    const std::string& program);

}  // namespace millrace
