#include "base/status_names.h"

namespace millrace {

std::optional<StatusCode> parse_status_code(std::string_view name) {
  for (int number = 0; number <= static_cast<int>(StatusCode::kInternal); ++number) {
    const auto code = static_cast<StatusCode>(number);
    if (status_code_name(code) == name) return code;
  }
  return std::nullopt;
}

}  // namespace millrace
