#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "app/settings.h"
#include "cli/command.h"

namespace millrace::cli {

// What the flags that every command takes said.
struct GlobalFlags {
  bool json = false;
  bool quiet = false;
  std::string config_file;
  // One text per row of all_settings(), in that order; used when its flag was given.
  std::vector<std::string> texts;
};

// Adds the flags that every command takes, the settings among them, and all commands.
void build_command_line(CommandLine& line, GlobalFlags& flags,
                        const EnvironmentLookup& environment);

// The settings that were given as flags.
SettingFlags given_settings(const CommandLine& line, const GlobalFlags& flags);

// The help page of one command, global flags included.
std::string help_text(CommandLine& line, CLI::App& command);

// "millrace 0.1.0 (abc123, gcc 12.2.0, release)".
std::string version_text();
// The same as one line of JSON.
std::string version_document();

// One sentence about a command line that could not be read: which word, what was expected, and the
// nearest that exists.
std::string explain_usage_error(CommandLine& line, const std::vector<std::string>& arguments,
                                const CLI::ParseError& error);

// "unknown command 'stroe', did you mean 'store'? ...". `path` is what stood before it.
std::string unknown_command(const CLI::App& parent, std::string_view word, std::string_view path);

}  // namespace millrace::cli
