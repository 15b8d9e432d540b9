#pragma once

#include <sys/types.h>

namespace millrace::bench {

// User and system time of a process so far, and the most memory that it had. Throw
// std::runtime_error when it is gone.
double process_cpu_s(pid_t process);
double process_rss_mib_max(pid_t process);

}  // namespace millrace::bench
