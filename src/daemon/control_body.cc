#include "daemon/control_body.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

const Json* ControlBody::find(const char* name) {
  known_.emplace_back(name);
  if (!status_.ok() || !document_.is_object()) return nullptr;
  const auto found = document_.find(name);
  return found == document_.end() || found->is_null() ? nullptr : &*found;
}

void ControlBody::refuse(const char* name, const char* expected) {
  status_ = Status(StatusCode::kInvalidArgument,
                   fmt::format("the field '{}' must be {}", name, expected));
}

std::optional<std::string> ControlBody::text(const char* name) {
  const Json* const field = find(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_string()) return field->get<std::string>();
  refuse(name, "a text");
  return std::nullopt;
}

std::optional<std::uint64_t> ControlBody::number(const char* name) {
  const Json* const field = find(name);
  if (field == nullptr) return std::nullopt;
  if (field->is_number_unsigned()) return field->get<std::uint64_t>();
  refuse(name, "a whole number, not negative");
  return std::nullopt;
}

bool ControlBody::flag(const char* name) {
  const Json* const field = find(name);
  if (field == nullptr) return false;
  if (field->is_boolean()) return field->get<bool>();
  refuse(name, "true or false");
  return false;
}

std::vector<std::string> ControlBody::texts(const char* name) {
  const Json* const field = find(name);
  if (field == nullptr) return {};
  const auto is_text = [](const Json& item) { return item.is_string(); };
  if (field->is_array() && std::ranges::all_of(*field, is_text)) {
    return field->get<std::vector<std::string>>();
  }
  refuse(name, "a list of texts");
  return {};
}

Status ControlBody::status() const {
  if (!status_.ok() || !document_.is_object()) return status_;
  for (const auto& [name, value] : document_.items()) {
    if (std::ranges::find(known_, name) != known_.end()) continue;
    return {StatusCode::kInvalidArgument,
            fmt::format("there is no field '{}' in such a request", name)};
  }
  return {};
}

}  // namespace millrace
