#include "app/settings.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/config_file.h"
#include "app/suggestion.h"

namespace millrace {
namespace {

std::vector<std::string> setting_names() {
  std::vector<std::string> names;
  for (const SettingSpec& spec : all_settings())
    names.emplace_back(spec.name);
  return names;
}

// Entries by name, with unknown names refused.
Result<std::map<std::string, ConfigEntry>> known_entries(const std::string& file) {
  MR_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries, read_config_file(file));
  const std::vector<std::string> names = setting_names();
  std::map<std::string, ConfigEntry> known;
  for (const ConfigEntry& entry : entries) {
    if (std::ranges::find(names, entry.name) == names.end()) {
      const std::string guess = did_you_mean(entry.name, names);
      return failure(
          StatusCode::kInvalidArgument,
          fmt::format(
              "{}:{}: unknown setting '{}'{}", file, entry.line, entry.name,
              guess.empty() ? fmt::format(": expected one of {}", fmt::join(names, ", ")) : guess));
    }
    known.emplace(entry.name, entry);
  }
  return known;
}

Status apply(Settings& settings, const SettingOrigin& origin) {
  const SettingSpec& spec = *origin.spec;
  Status status;
  if (!spec.choices.empty() && std::ranges::find(spec.choices, origin.text) == spec.choices.end()) {
    status = {StatusCode::kInvalidArgument,
              fmt::format("'{}' is not accepted: expected {}", origin.text,
                          fmt::join(spec.choices, ", "))};
  } else {
    status = spec.apply(settings, origin.text);
  }
  if (status.ok()) return {};
  // The file's position says nothing about which setting it is; a flag or a variable does.
  const std::string where = origin.source == SettingSource::kFile
                                ? fmt::format("{}: {}", origin.where, spec.name)
                                : origin.where;
  return status.with_context(where);
}

}  // namespace

Result<LoadedSettings> load_settings(const SettingFlags& flags,
                                     const EnvironmentLookup& environment) {
  LoadedSettings loaded;
  const UserDirectories directories = user_directories(environment);
  if (!directories.substitute.empty()) {
    MR_RETURN_IF_ERROR(claim_directory(directories.substitute));
  }
  std::map<std::string, ConfigEntry> entries;
  const bool named = !flags.config_file.empty();
  const std::string file = named ? flags.config_file : directories.config + "/config.yaml";
  auto read = known_entries(file);
  if (read) {
    entries = std::move(*read);
    loaded.config_file = file;
  } else if (named || read.error().code() != StatusCode::kNotFound) {
    return failure(std::move(read).error());
  }

  for (const SettingSpec& spec : all_settings()) {
    const std::string name(spec.name);
    SettingOrigin origin{&spec, "", SettingSource::kDefault, "default"};
    const auto flag = std::ranges::find(flags.values, name, [](const auto& v) { return v.first; });
    const auto variable = environment(std::string(spec.variable));
    const auto entry = entries.find(name);
    if (flag != flags.values.end()) {
      origin = {&spec, flag->second, SettingSource::kFlag, std::string(spec.flag)};
    } else if (variable) {
      origin = {&spec, *variable, SettingSource::kEnvironment, std::string(spec.variable)};
    } else if (entry != entries.end()) {
      origin = {&spec, entry->second.value, SettingSource::kFile,
                fmt::format("{}:{}", file, entry->second.line)};
    } else {
      origin.text = default_text(spec, environment);
    }
    MR_RETURN_IF_ERROR(apply(loaded.settings, origin));
    loaded.origins.push_back(std::move(origin));
  }
  return loaded;
}

std::string settings_document() {
  std::string text =
      "# Settings\n"
      "\n"
      "<!-- Written by `millrace config document` from src/app/settings_table.cc; a test compares\n"
      "     them. Change the table, then write this file again. -->\n"
      "\n"
      "Each setting can be given as a flag, as an environment variable, or in a config file: the\n"
      "flag wins over the variable, the variable over the file, the file over the default.\n"
      "`millrace config show` prints what is in force and where it comes from.\n"
      "\n"
      "The config file is `$XDG_CONFIG_HOME/millrace/config.yaml` "
      "(`~/.config/millrace/config.yaml`)\n"
      "if it exists, or the one that `--config FILE` names. It is a flat YAML mapping; an unknown\n"
      "name, a list, an anchor or a second value for a name is an error that names its line:\n"
      "\n"
      "```yaml\n"
      "store: s3://my-bucket/training?region=eu-central-1\n"
      "cache: /nvme/millrace\n"
      "memory_max: 1GiB\n"
      "```\n"
      "\n"
      "`<data>` is `$XDG_DATA_HOME/millrace` (`~/.local/share/millrace`). Where `HOME` is not\n"
      "set, as under systemd or for a line of /etc/fstab, `~` is what the system's list of users\n"
      "says; for a user without a home it is `/tmp/millrace-UID`, which must be the user's own\n"
      "and 0700.\n"
      "\n"
      "Two variables are no settings: `MILLRACE_RUN` names the run whose reads are counted, and\n"
      "`MILLRACE_KEEPER_WAIT` (60s), where a daemon is started, how long the mounts of a killed "
      "one\n"
      "wait for the next.\n"
      "\n"
      "| name | flag | variable | default | meaning |\n"
      "|---|---|---|---|---|\n";
  for (const SettingSpec& spec : all_settings()) {
    const std::string choices =
        spec.choices.empty() ? "" : fmt::format(": {}", fmt::join(spec.choices, ", "));
    text += fmt::format("| `{}` | `{} {}` | `{}` | `{}` | {}{} |\n", spec.name, spec.flag,
                        spec.placeholder, spec.variable, spec.default_text, spec.help, choices);
  }
  return text;
}

}  // namespace millrace
