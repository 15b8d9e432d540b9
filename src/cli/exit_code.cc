#include "cli/exit_code.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace millrace::cli {
namespace {

using enum StatusCode;

const std::array<ExitCode, 12>& table() {
  static const std::array<ExitCode, 12> codes = {{
      {kExitOk, "success", {kOk}},
      {kExitFailure, "failure: the local disk, or a bug of ours", {kIoError, kInternal}},
      {kExitUsage, "usage: a wrong command, flag, URL, setting or name", {kInvalidArgument}},
      {3, "not found", {kNotFound}},
      {4, "no permission, or no valid credentials", {kPermissionDenied, kUnauthenticated}},
      {5,
       "the store is unreachable, too busy or too slow: try again later",
       {kUnavailable, kThrottled, kDeadlineExceeded}},
      {6, "conflict: the object exists already, or has changed", {kConflict, kPreconditionFailed}},
      {7, "the store cannot do this", {kUnsupported}},
      {8, "bytes failed their checksum", {kCorruption}},
      {9,
       "no room: the cache cannot hold it, or a limit of this machine is reached",
       {kResourceExhausted}},
      {130, "interrupted by a signal (128 + its number)", {kCancelled}},
      {kExitReaderGone, "the reader of the output went away, as in 'millrace ... | head'", {}},
  }};
  return codes;
}

}  // namespace

std::span<const ExitCode> all_exit_codes() { return table(); }

int exit_code(StatusCode code) {
  for (const ExitCode& row : table()) {
    if (std::ranges::find(row.codes, code) != row.codes.end()) return row.number;
  }
  return kExitFailure;
}

std::string exit_codes_text() {
  std::string text = "Exit codes:\n";
  for (const ExitCode& row : table())
    text += fmt::format("  {:>3}  {}\n", row.number, row.meaning);
  return text;
}

}  // namespace millrace::cli
