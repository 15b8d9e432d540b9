#pragma once

#include <string_view>

namespace millrace {

// Where the registry lives in its store; docs/formats/registry.md has the whole tree.
inline constexpr std::string_view kOwnPrefix = ".millrace/";
inline constexpr std::string_view kDatasetsPrefix = ".millrace/datasets/";
inline constexpr std::string_view kRunsPrefix = ".millrace/runs/";
inline constexpr std::string_view kUsesPrefix = ".millrace/uses/";

}  // namespace millrace
