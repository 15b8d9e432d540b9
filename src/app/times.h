#pragma once

#include <string>

#include "base/clock.h"

namespace millrace {

// "2026-11-15T10:00:00Z".
std::string format_time(WallTime time);

}  // namespace millrace
