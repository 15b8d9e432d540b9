#include "objectstore/file_object_store_keys.h"

#include <fmt/format.h>

namespace millrace::file_object_store {
namespace {

std::string name_of_component(std::string_view component) {
  if (component.empty()) return "%";
  if (component == ".") return "%2E";
  if (component == "..") return "%2E%2E";
  std::string name;
  for (const char c : component) {
    if (c == '%') {
      name += "%25";
    } else {
      name += c;
    }
  }
  return name;
}

}  // namespace

Result<std::string> path_of_key(const ObjectKey& key) {
  std::string path;
  std::string_view rest = key.value();
  for (;;) {
    const std::size_t slash = rest.find('/');
    const std::string name = name_of_component(rest.substr(0, slash));
    if (name.size() > kNameBytesMax) {
      return failure(
          StatusCode::kInvalidArgument,
          fmt::format("the part '{}...' of key '{}' takes {} bytes as a file name, at most {} are "
                      "possible in a file:// store: put a '/' into it",
                      name.substr(0, 32), key.value(), name.size(), kNameBytesMax));
    }
    path += name;
    if (slash == std::string_view::npos) return path;
    path += '/';
    rest.remove_prefix(slash + 1);
  }
}

std::optional<std::string> component_of_name(std::string_view name) {
  if (name == "%") return "";
  if (name == "%2E") return ".";
  if (name == "%2E%2E") return "..";
  std::string component;
  while (!name.empty()) {
    if (name.starts_with("%25")) {
      component += '%';
      name.remove_prefix(3);
    } else if (name.front() == '%') {
      return std::nullopt;
    } else {
      component += name.front();
      name.remove_prefix(1);
    }
  }
  return component;
}

}  // namespace millrace::file_object_store
