#include "dataset/entry_order.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/file_name.h"

namespace millrace {

std::string_view entry_kind_name(EntryKind kind) {
  switch (kind) {
    case EntryKind::kDirectory:
      return "directory";
    case EntryKind::kFile:
      return "file";
    case EntryKind::kSymlink:
      return "symlink";
  }
  return "unknown";
}

std::optional<std::string> entry_path_fault(std::string_view path) {
  if (path.size() > kEntryPathBytesMax) {
    return fmt::format("it has {} bytes, at most {} are possible", path.size(), kEntryPathBytesMax);
  }
  if (path.empty()) return std::nullopt;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (auto fault = file_name_fault(path.substr(begin, end - begin))) return fault;
    begin = end + 1;
  }
  return std::nullopt;
}

std::size_t path_depth(std::string_view path) {
  if (path.empty()) return 0;
  return static_cast<std::size_t>(std::ranges::count(path, '/')) + 1;
}

std::string_view entry_parent(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

std::string_view entry_base(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::strong_ordering compare_entries(std::string_view a, std::string_view b) {
  const std::strong_ordering depths = path_depth(a) <=> path_depth(b);
  return depths != 0 ? depths : compare_level_paths(a, b);
}

std::strong_ordering compare_level_paths(std::string_view a, std::string_view b) {
  const std::size_t both = std::min(a.size(), b.size());
  const auto [in_a, in_b] =
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(both), b.begin());
  if (in_a == a.begin() + static_cast<std::ptrdiff_t>(both)) return a.size() <=> b.size();
  // The slash ends a name, so it counts as lower than any byte that goes on with it.
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1; };
  return rank(*in_a) <=> rank(*in_b);
}

}  // namespace millrace
