#include "dataset/version_ref.h"

#include <fmt/format.h>

namespace millrace {

Result<VersionRef> VersionRef::parse(std::string_view text) {
  const std::size_t at = text.find('@');
  MR_ASSIGN_OR_RETURN(DatasetName dataset, DatasetName::parse(text.substr(0, at)));
  if (at == std::string_view::npos || at + 1 == text.size()) {
    return failure(
        StatusCode::kInvalidArgument,
        fmt::format("'{}' names no version: write {}@VERSION", dataset.text(), dataset.text()));
  }
  MR_ASSIGN_OR_RETURN(VersionName version, VersionName::parse(text.substr(at + 1)));
  return VersionRef{std::move(dataset), std::move(version)};
}

}  // namespace millrace
