#include "app/times.h"

#include <fmt/chrono.h>

namespace millrace {

std::string format_time(WallTime time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(seconds.time_since_epoch().count())));
}

}  // namespace millrace
