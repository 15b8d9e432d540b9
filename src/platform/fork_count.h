#pragma once

#include <cstdint>

namespace millrace {

// A number that a fork changes, in parent and child alike: what was noted before the fork, and
// differs, may be in two processes. Counts from the first call on. Safe from any thread.
std::uint64_t fork_count();

}  // namespace millrace
