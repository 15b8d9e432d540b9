#include "platform/disk_lock.h"

#include <algorithm>

#include <fmt/format.h>

namespace millrace {

Status lock_conflict(std::string_view path, std::string_view text) {
  const auto is_control = [](char c) { return (c >= '\0' && c < ' ') || c == '\x7f'; };
  const auto end = std::ranges::find_if(text, is_control);
  const std::string_view owner(text.begin(), end);
  return {StatusCode::kConflict,
          fmt::format("{} is held by {}", path, owner.empty() ? "another process" : owner)};
}

}  // namespace millrace
