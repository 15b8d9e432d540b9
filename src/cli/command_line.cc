#include "cli/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/version.h"
#include "cli/exit_code.h"
#include "cli/output.h"

namespace millrace::cli {
namespace {

constexpr const char* kGlobalGroup = "Flags of every command";
constexpr const char* kSettingGroup = "Settings of every command (docs/config.md)";

void add_setting_flags(CommandLine& line, GlobalFlags& flags,
                       const EnvironmentLookup& environment) {
  const auto settings = all_settings();
  flags.texts.resize(settings.size());
  for (std::size_t i = 0; i < settings.size(); ++i) {
    const SettingSpec& spec = settings[i];
    const std::string value = spec.choices.empty()
                                  ? std::string(spec.placeholder)
                                  : fmt::format("{}", fmt::join(spec.choices, "|"));
    line.root
        .add_option(std::string(spec.flag), flags.texts[i],
                    fmt::format("{} [{}]", spec.help, spec.variable))
        ->type_name(value)
        ->default_str(default_text(spec, environment))
        ->group(kSettingGroup);
  }
}

constexpr std::string_view compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

constexpr std::string_view sanitized() {
#if defined(__SANITIZE_ADDRESS__)
  return ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
  return ", thread sanitizer";
#else
  return "";
#endif
}

constexpr std::string_view features() {
#if MILLRACE_WITH_URING
  return "s3, file, memory, io_uring";
#else
  return "s3, file, memory";
#endif
}

}  // namespace

std::string version_text() {
  return fmt::format("millrace {} (revision {}, {}{})\nfeatures: {}", version(), git_revision(),
                     compiler(), sanitized(), features());
}

std::string version_document() {
  const Json document = {{"version", version()},
                         {"revision", git_revision()},
                         {"compiler", compiler()},
                         {"features", features()}};
  return json_text(document) + "\n";
}

void build_command_line(CommandLine& line, GlobalFlags& flags,
                        const EnvironmentLookup& environment) {
  CLI::App& root = line.root;
  root.fallthrough();
  root.require_subcommand(1);
  // "--no-repack=false" would read as asked for, or as not: neither is said, so it is refused.
  // Every command takes this over from its parent.
  root.option_defaults()->disable_flag_override();
  root.set_help_flag("-h,--help", "Show the help of a command");
  root.get_help_ptr()->group(kGlobalGroup);
  root.set_version_flag("--version", version_text, "Show version, build and features")
      ->group(kGlobalGroup);
  root.add_flag("--json", flags.json, "Write JSON for programs; errors too, on standard error")
      ->group(kGlobalGroup);
  root.add_flag("-q,--quiet", flags.quiet, "No progress and no remarks on standard error")
      ->group(kGlobalGroup);
  root.add_option("--config", flags.config_file, "Read settings from this file")
      ->type_name("FILE")
      ->default_str(user_directories(environment).config + "/config.yaml")
      ->group(kSettingGroup);
  add_setting_flags(line, flags, environment);
  root.get_formatter()->column_width(34);
  root.footer([] {
    return "Start with:\n"
           "  millrace store cp FILE store:FILE   into the embedded store, nothing to set up\n"
           "  millrace doctor                     whether this machine and the store are fit\n\n" +
           exit_codes_text();
  });
  register_commands(line);
}

SettingFlags given_settings(const CommandLine& line, const GlobalFlags& flags) {
  SettingFlags given{flags.config_file, {}};
  const auto settings = all_settings();
  for (std::size_t i = 0; i < settings.size(); ++i) {
    if (line.root.get_option(std::string(settings[i].flag))->count() == 0) continue;
    given.values.emplace_back(settings[i].name, flags.texts[i]);
  }
  return given;
}

std::string help_text(CommandLine& line, CLI::App& command) {
  std::string path;
  for (const CLI::App* app = command.get_parent(); app != nullptr; app = app->get_parent()) {
    path = path.empty() ? app->get_name() : app->get_name() + " " + path;
  }
  // Not command.help(): that turns to the command on the line, which for 'millrace help' is 'help'.
  path += (path.empty() ? "" : " ") + command.get_name();
  std::string text = command.get_formatter()->make_help(&command, path, CLI::AppFormatMode::Normal);
  if (&command != &line.root) {
    text +=
        "\nAlso: --json, --quiet, --store URL, --config FILE and the other flags of every "
        "command, see 'millrace --help'.\n";
  }
  return text;
}

}  // namespace millrace::cli
