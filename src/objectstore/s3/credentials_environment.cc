#include "objectstore/s3/credentials_environment.h"

#include <strings.h>

#include <cstdlib>

namespace millrace::s3 {

Environment Environment::process() {
  return Environment([](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  });
}

std::optional<std::string> Environment::get(std::string_view name) const {
  std::optional<std::string> value = lookup_(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::string Environment::get_or(std::string_view name, std::string_view otherwise) const {
  return get(name).value_or(std::string(otherwise));
}

bool Environment::is_true(std::string_view name) const {
  const auto value = get(name);
  return value && strcasecmp(value->c_str(), "true") == 0;
}

}  // namespace millrace::s3
