#include "daemon/control_request.h"

#include <fmt/format.h>

namespace millrace {

Result<bool> ControlRequest::queried_flag(const std::string& name) const {
  const auto found = query.find(name);
  if (found == query.end()) return false;
  const std::string& text = found->second;
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("{} '{}' is not accepted: expected true, false, 1 or 0", name, text));
}

}  // namespace millrace
