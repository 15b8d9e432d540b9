#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/bucket_setting.h"
#include "app/environment.h"
#include "app/nfs_setting.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/status.h"
#include "base/units.h"
#include "frontends/nfs4/nfs_export.h"
#include "objectstore/store_url.h"

namespace millrace {

// Everything that can be set, typed and checked. One row of kSettings per member.
struct Settings {
  StoreUrl store;
  std::string cache;
  SizeOrPercentage cache_size;  // Of the cache's disk.
  Percentage cache_free_min;
  std::string cache_key_file;  // Empty: the cache is not encrypted.
  std::string socket;
  LogLevel log_level = LogLevel::kWarn;
  LogFormat log_format = LogFormat::kText;
  Duration timeout{};
  std::uint32_t attempts_max = 0;
  std::uint64_t memory_max_bytes = 0;
  std::uint32_t connections_max = 0;
  std::uint32_t disk_threads = 0;
  std::vector<BucketSetting> buckets;
  bool require_version = false;
  std::optional<NfsSetting> nfs;  // Nothing: NFS is not served.
  std::vector<NfsExport> exports;
  Duration nfs_lease{};
  std::string nfs_key_file;  // Empty: one of this machine's own.
  // Empty: no TLS, and nobody is asked for certificates.
  std::string nfs_tls_certificate;
  std::string nfs_tls_key;
  std::string nfs_tls_client_ca;
};

// One setting, declared once: the loader, the command line, the help, the completion, `config show`
// and docs/config.md are all made from these rows.
struct SettingSpec {
  std::string_view name;          // In the config file: "log_level".
  std::string_view variable;      // "MILLRACE_LOG_LEVEL".
  std::string_view flag;          // "--log-level".
  std::string_view placeholder;   // What the help shows for the value: "LEVEL".
  std::string_view default_text;  // As documented; "<data>" is a directory.
  std::string_view help;
  std::vector<std::string> choices;  // Empty: anything that apply() takes.
  // Parses `text` into its member. The message says what was expected; the caller adds where.
  Status (*apply)(Settings& settings, const std::string& text);
  // Of what a daemon serves with: the member as text (app/setting_texts.h), so that a command can
  // hold its own against the daemon's. Null for what each process has for itself.
  std::string (*served_text)(const Settings& settings) = nullptr;
};

std::span<const SettingSpec> all_settings();

enum class SettingSource : std::uint8_t { kDefault, kFile, kEnvironment, kFlag };

// The value of one setting as text, and who said so.
struct SettingOrigin {
  const SettingSpec* spec = nullptr;
  std::string text;
  SettingSource source = SettingSource::kDefault;
  // For people: "default", "/home/a/.config/millrace/config.yaml:3", "MILLRACE_STORE", "--store".
  std::string where;
};

struct LoadedSettings {
  Settings settings;
  std::vector<SettingOrigin> origins;  // In the order of all_settings().
  std::string config_file;             // Empty when none was read.
};

// What the command line said.
struct SettingFlags {
  std::string config_file;  // --config; empty when not given.
  // Name of the setting and its text, for the flags that were given.
  std::vector<std::pair<std::string, std::string>> values;
};

// The default with its directories filled in.
std::string default_text(const SettingSpec& spec, const EnvironmentLookup& environment);

// Flag before environment before file before default. kInvalidArgument names the flag, the variable
// or the file and line; kNotFound when the file that --config names is not there; kPermissionDenied
// when what stands for the home of a user without one is not safe (claim_directory).
Result<LoadedSettings> load_settings(const SettingFlags& flags,
                                     const EnvironmentLookup& environment);

// The text of docs/config.md.
std::string settings_document();

}  // namespace millrace
