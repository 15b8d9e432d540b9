#include "dataset/source_tree.h"

#include <fmt/format.h>

namespace millrace {

Status source_changed(std::string_view path, std::string_view how) {
  return Status(StatusCode::kConflict,
                fmt::format("'{}' changed since it was scanned: {}", path, how));
}

}  // namespace millrace
