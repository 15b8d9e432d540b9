#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace::cli {

// One row of the table that scripts rely on: what the process exits with, and when.
struct ExitCode {
  int number;
  std::string_view meaning;
  std::vector<StatusCode> codes;  // Empty for rows that no status leads to.
};

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitReaderGone = 141;
inline constexpr int kExitSignalBase = 128;

std::span<const ExitCode> all_exit_codes();
int exit_code(StatusCode code);

// The table as `millrace help exit-codes` and the foot of `millrace --help` print it.
std::string exit_codes_text();

}  // namespace millrace::cli
