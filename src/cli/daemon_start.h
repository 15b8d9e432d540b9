#pragma once

#include "base/status.h"
#include "cli/session.h"

namespace millrace::cli {

// Returns when a daemon answers at the session's socket and is ready. Where none runs one is
// started in the background, with the settings of this command; it outlives the command, and logs
// to serve.log in the user's data directory. Of several commands at once one starts it, and the
// others wait. A failure has the last lines of the log.
Status ensure_daemon(Session& session);

}  // namespace millrace::cli
