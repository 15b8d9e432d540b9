#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"

namespace millrace {

// The code that status_code_name() gives this name; nothing for a name that it gives none.
std::optional<StatusCode> parse_status_code(std::string_view name);

}  // namespace millrace
