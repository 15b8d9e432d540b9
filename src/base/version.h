#pragma once

#include <string_view>

// Defined in a file that the build generates (cmake/version.cmake). These are functions, so that a
// new commit recompiles that one file and not every file that includes this header.

namespace millrace {

// "0.1.0": the version in the project() line of CMakeLists.txt.
std::string_view version();

// The short git hash that this binary was built from; "unknown" outside a git work tree.
std::string_view git_revision();

}  // namespace millrace
