#include "cli/run.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/exit_code.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

// What to do next, for failures whose message only says what was tried.
std::string_view advice(const Status& status) {
  if (status.message().contains("check the ")) return "";
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
      return "; check the endpoint and the network, 'millrace doctor' looks closer";
    case StatusCode::kPermissionDenied:
      return "; check the rights of the user or of the credentials, 'millrace doctor' names them";
    default:
      return "";
  }
}

void report(const Status& status, bool json) {
  if (json) {
    const Json error = {{"error",
                         {{"code", status_code_name(status.code())},
                          {"message", status.message()},
                          {"exit_code", exit_code(status.code())}}}};
    fmt::print(stderr, "{}\n", json_text(error));
  } else {
    fmt::print(stderr, "millrace: {}{}\n", printable(status.message()), advice(status));
  }
}

// Occupies the standard streams that the caller closed, as in "<&-" or ">&-": else the next file or
// socket we open would become one, and be read as input or written to as output. Opened the wrong
// way round, so that using one is an error that is reported.
void occupy_closed_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    // The lowest free number is `fd` itself: those below it are open by now.
    if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) return;
  }
}

// Help and version are asked for, so they are output like any other.
int print(std::string_view text) {
  Output output(STDOUT_FILENO, false);
  Status status = output.write(as_bytes(text));
  if (status.ok()) status = output.flush();
  if (output.reader_gone()) return kExitReaderGone;
  if (!status.ok()) report(status, false);
  return exit_code(status.code());
}

// The deepest command on the line, for its help page.
CLI::App& deepest(CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : deepest(*parsed.front());
}

int finish(Result<int> result, Output& output, const Interrupt& interrupt) {
  Status status = result ? Status() : result.error();
  const Status flushed = output.flush();
  if (output.reader_gone()) return kExitReaderGone;
  if (status.ok()) status = flushed;
  if (interrupt.signal() != 0 && !interrupt.expected()) {
    if (!output.json()) fmt::print(stderr, "millrace: interrupted\n");
    return kExitSignalBase + interrupt.signal();
  }
  if (status.ok()) return *result;
  report(status, output.json());
  return exit_code(status.code());
}

int run_command(CommandLine& line, const GlobalFlags& flags, const EnvironmentLookup& environment) {
  const RequestContext context(TimePoint::max(), "cli");
  Interrupt interrupt(context.shared_cancellation());
  Output output(STDOUT_FILENO, flags.json);
  auto loaded = load_settings(given_settings(line, flags), environment);
  if (!loaded && !line.needs_settings) loaded = LoadedSettings();
  if (!loaded) return finish(failure(std::move(loaded).error()), output, interrupt);
  set_log_level(loaded->settings.log_level);
  set_log_format(loaded->settings.log_format);
  Session session(std::move(*loaded), environment, output, interrupt, context, flags.quiet);
  return finish(line.chosen(session), output, interrupt);
}

}  // namespace

int run(std::vector<std::string> arguments) {
  occupy_closed_streams();
  const EnvironmentLookup environment = process_environment();
  CommandLine line;
  GlobalFlags flags;
  build_command_line(line, flags, environment);
  try {
    // CLI11 takes its words from the back.
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    line.root.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    return print(help_text(line, deepest(line.root)));
  } catch (const CLI::CallForVersion&) {
    if (!flags.json) return print(version_text() + "\n");
    return print(version_document());
  } catch (const CLI::ParseError& error) {
    const bool json = std::ranges::find(arguments, "--json") != arguments.end();
    report({StatusCode::kInvalidArgument, explain_usage_error(line, arguments, error)}, json);
    return kExitUsage;
  }
  return run_command(line, flags, environment);
}

}  // namespace millrace::cli
