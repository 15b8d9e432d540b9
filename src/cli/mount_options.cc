#include "cli/mount_options.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "app/settings.h"

namespace millrace::cli {
namespace {

// What mount(8) takes for every file system. The mount is so anyway, or it is about times of access
// and writes, which there are none of; the rest is what mount(8), systemd and init scripts say to
// themselves.
constexpr std::array<std::string_view, 37> kPassedOver = {
    "ro",         "defaults", "auto",       "noauto",      "user",          "nouser",
    "users",      "nousers",  "owner",      "noowner",     "group",         "nogroup",
    "nofail",     "_netdev",  "dev",        "nodev",       "suid",          "nosuid",
    "async",      "sync",     "dirsync",    "atime",       "noatime",       "diratime",
    "nodiratime", "relatime", "norelatime", "strictatime", "nostrictatime", "lazytime",
    "nolazytime", "iversion", "noiversion", "mand",        "nomand",        "silent",
    "loud"};

// "x-systemd.automount", "X-mount.mkdir", "comment=systemd.automount".
bool is_for_others(std::string_view option) {
  return option.starts_with("x-") || option.starts_with("X-") || option.starts_with("comment=") ||
         std::ranges::count(kPassedOver, option) != 0;
}

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// The flag of a setting: "--store" of "store". Nothing when it is none.
std::string setting_flag(std::string_view name) {
  if (name == "config") return "--config";
  for (const SettingSpec& setting : all_settings()) {
    if (setting.name == name) return std::string(setting.flag);
  }
  return "";
}

}  // namespace

Status apply_mount_options(const std::string& text, MountOptions& options) {
  constexpr std::string_view kOpening = "opening=";
  for (const std::string& option : split(text)) {
    if (option.starts_with(kOpening)) {
      options.opening = option.substr(kOpening.size());
    } else if (option == "allow_other") {
      options.allow_other = true;
    } else if (option == "exec" || option == "noexec") {
      options.allow_execution = option == "exec";
    } else if (option == "rw") {
      return {StatusCode::kInvalidArgument, "a mount cannot be written: use ro instead of rw"};
    } else if (!is_for_others(option)) {
      return {StatusCode::kInvalidArgument,
              fmt::format("unknown mount option '{}': there are opening=MODE and allow_other, and "
                          "in /etc/fstab each setting of docs/config.md",
                          option)};
    }
  }
  return {};
}

std::vector<std::string> mount_helper_arguments(const std::vector<std::string>& arguments) {
  std::vector<std::string> settings;
  std::vector<std::string> rest;
  std::string options;
  for (std::size_t n = 0; n < arguments.size(); ++n) {
    if (arguments[n] == "-o" && n + 1 < arguments.size()) {
      for (const std::string& option : split(arguments[++n])) {
        const std::size_t equals = option.find('=');
        const std::string flag =
            equals == std::string::npos ? "" : setting_flag(option.substr(0, equals));
        if (flag.empty()) {
          options += (options.empty() ? "" : ",") + option;
        } else {
          settings.insert(settings.end(), {flag, option.substr(equals + 1)});
        }
      }
    } else if (!arguments[n].starts_with('-')) {
      rest.push_back(arguments[n]);
    }
  }
  // fstab cannot leave the source out: "all", "none" and "millrace" stand for the whole tree.
  if (rest.size() == 2 && (rest[0] == "all" || rest[0] == "none" || rest[0] == "millrace")) {
    rest.erase(rest.begin());
  }
  std::vector<std::string> line = std::move(settings);
  line.emplace_back("mount");
  line.insert(line.end(), rest.begin(), rest.end());
  if (!options.empty()) line.insert(line.end(), {"-o", options});
  return line;
}

}  // namespace millrace::cli
