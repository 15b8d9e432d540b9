#pragma once

#include "base/request_context.h"
#include "base/status.h"
#include "cli/session.h"

namespace millrace::cli {

// Whether the daemon at the session's socket serves with what this command was given, by a flag, a
// variable or a file. kConflict names a setting that is another there, and what to do: a command
// must not show or change the data of one store when it was asked for those of another. Defaults
// are not compared. Fails as ControlClient does when no daemon answers and there is something to
// compare.
Status check_daemon_settings(Session& session, const RequestContext& context);

}  // namespace millrace::cli
