#pragma once

#include "base/status.h"
#include "cli/session.h"

namespace millrace::cli {

enum class DaemonUp {
  kListens,  // It takes requests, and may not have asked its store for anything yet.
  kReady,    // It has asked, so it knows whether the store answers.
};

// Returns when a daemon answers at the session's socket and is up so far. Where none runs one is
// started in the background, with the settings of this command; it outlives the command, and logs
// to serve.log in the user's data directory. Of several commands at once one starts it, and the
// others wait. A failure has the last lines of the log; kConflict is a daemon of other settings
// (cli/daemon_settings.h).
Status ensure_daemon(Session& session, DaemonUp up = DaemonUp::kReady);

}  // namespace millrace::cli
