#include <algorithm>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

std::string_view source_name(SettingSource source) {
  switch (source) {
    case SettingSource::kDefault:
      return "default";
    case SettingSource::kFile:
      return "file";
    case SettingSource::kEnvironment:
      return "environment";
    case SettingSource::kFlag:
      return "flag";
  }
  return "unknown";
}

Result<int> show(Session& session) {
  Output& output = session.output();
  const LoadedSettings& loaded = session.loaded();
  if (output.json()) {
    Json settings = Json::object();
    for (const SettingOrigin& origin : loaded.origins) {
      settings[std::string(origin.spec->name)] = {
          {"value", origin.text}, {"source", source_name(origin.source)}, {"where", origin.where}};
    }
    Json file = loaded.config_file.empty() ? Json() : Json(loaded.config_file);
    MR_RETURN_IF_ERROR(output.document({{"config_file", file}, {"settings", settings}}));
    return 0;
  }
  std::size_t width = 0;
  for (const SettingOrigin& origin : loaded.origins) {
    width = std::max(width, origin.text.size());
  }
  for (const SettingOrigin& origin : loaded.origins) {
    MR_RETURN_IF_ERROR(output.line(
        fmt::format("{:<16} {:<{}}  {}", origin.spec->name, origin.text, width, origin.where)));
  }
  return 0;
}

}  // namespace

void register_config_show(CommandLine& line, CLI::App& config) {
  CLI::App* const command =
      config.add_subcommand("show", "Show the settings in force and where each comes from");
  line.runs(command, show);
}

void register_config_document(CommandLine& line, CLI::App& config) {
  CLI::App* const command =
      config.add_subcommand("document", "Write docs/config.md from the table of settings");
  line.runs(command, [](Session& session) -> Result<int> {
    MR_RETURN_IF_ERROR(session.output().write(as_bytes(settings_document())));
    return 0;
  });
}

}  // namespace millrace::cli
