#pragma once

#include <cstdint>
#include <string>

#include "app/environment.h"
#include "base/bytes.h"
#include "base/status.h"

namespace millrace::cli {

// Of a daemon in the background. Somebody looks for yesterday's failure in it, not for last year's.
inline constexpr std::uint64_t kServeLogBytesMax = 16 * kMiB;

// In the user's data directory.
std::string serve_log_path(const EnvironmentLookup& environment);

// Empties the log when it has grown past `bytes_max`, and keeps its end, as many bytes at most, in
// PATH.1. It is not renamed: the daemon and its keeper have it open, and go on writing to it. What
// they write meanwhile is kept too, but for a line that comes at the very end. Leaves it to another
// process that is just doing the same. Nothing is synced: a log on a slow disk holds nobody up.
Status bound_serve_log(const std::string& path, std::uint64_t bytes_max = kServeLogBytesMax);

// The same for the daemon whose standard error it is; nothing for those that log elsewhere.
Status bound_own_serve_log(const std::string& path);

}  // namespace millrace::cli
