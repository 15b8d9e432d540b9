#include "base/file_name.h"

#include <cstring>

#include <fmt/format.h>

namespace millrace {

std::optional<std::string> file_name_fault(std::string_view name) {
  if (name.empty()) return "it has an empty name between slashes";
  if (name.size() > kFileNameBytesMax) {
    return fmt::format("a name in it has {} bytes, at most {} are possible", name.size(),
                       kFileNameBytesMax);
  }
  if (name == "." || name == "..") return fmt::format("'{}' in it is no name", name);
  if (std::memchr(name.data(), '/', name.size()) != nullptr) return "a name in it has a slash";
  if (std::memchr(name.data(), '\0', name.size()) != nullptr) return "it has a NUL byte";
  return std::nullopt;
}

}  // namespace millrace
