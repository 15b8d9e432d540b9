#pragma once

#include <string>

#include <CLI/App.hpp>
#include <fmt/format.h>

namespace millrace::cli {

// Refuses "-1", which would otherwise be taken for the largest number that there is.
inline CLI::Validator whole_number() {
  const auto complaint = [](const std::string& text) -> std::string {
    const bool is_whole =
        !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    return is_whole ? "" : fmt::format("'{}' is no whole number from 0 on", text);
  };
  return {complaint, ""};
}

}  // namespace millrace::cli
