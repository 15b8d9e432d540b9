#include "cli/mount_options.h"

#include <algorithm>
#include <array>
#include <optional>
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

// As mount(8) does it: a comma between double quotes ends no option.
std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts(1);
  bool is_quoted = false;
  for (const char c : text) {
    if (c == '"') is_quoted = !is_quoted;
    if (c == ',' && !is_quoted) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  std::erase(parts, "");
  return parts;
}

// The value of "name=value", without the double quotes around it. Nothing when there is none, or
// quotes stand elsewhere.
std::optional<std::string> value_of(std::string_view option) {
  const std::size_t equals = option.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  std::string_view value = option.substr(equals + 1);
  if (value.size() >= 2 && value.starts_with('"') && value.ends_with('"')) {
    value = value.substr(1, value.size() - 2);
  }
  if (value.contains('"')) return std::nullopt;
  return std::string(value);
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
  for (const std::string& option : split(text)) {
    const std::optional<std::string> value = value_of(option);
    if (option.starts_with("opening=") && value) {
      options.opening = *value;
    } else if (option == "allow_other") {
      options.allow_other = true;
    } else if (option == "exec" || option == "noexec") {
      options.allow_execution = option == "exec";
    } else if (option == "rw") {
      return {StatusCode::kInvalidArgument, "a mount cannot be written: use ro instead of rw"};
    } else if (!is_for_others(option) && option.contains('"')) {
      return {StatusCode::kInvalidArgument,
              fmt::format("the mount option '{}' is not accepted: double quotes stand around a "
                          "whole value, as in buckets=\"a=s3://one,b=s3://two\"",
                          option)};
    } else if (!is_for_others(option) && !options.sloppy) {
      return {StatusCode::kInvalidArgument,
              fmt::format(
                  "unknown mount option '{}': there are opening=MODE, allow_other and noexec, and "
                  "in /etc/fstab each setting of docs/config.md",
                  option)};
    }
  }
  return {};
}

namespace {

// The parts of a command line of ours.
struct HelperLine {
  std::vector<std::string> settings;
  std::vector<std::string> places;
  std::vector<std::string> flags;
  std::string options;

  void add_options(std::string_view text) {
    for (const std::string& option : split(text)) {
      const std::string flag = setting_flag(option.substr(0, option.find('=')));
      const std::optional<std::string> value = value_of(option);
      if (!flag.empty() && value) {
        settings.insert(settings.end(), {flag, *value});
      } else {
        options += (options.empty() ? "" : ",") + option;
      }
    }
  }
  // "-sfnv", together or one by one.
  void add_letters(std::string_view letters) {
    for (const char letter : letters) {
      if (letter == 'f') flags.emplace_back("--fake");
      if (letter == 's') flags.emplace_back("--sloppy");
    }
  }
};

bool is_letters(std::string_view word) {
  return word.size() > 1 && word.starts_with('-') &&
         word.find_first_not_of("sfnv", 1) == std::string_view::npos;
}

}  // namespace

std::vector<std::string> mount_helper_arguments(const std::vector<std::string>& arguments) {
  HelperLine given;
  for (std::size_t n = 0; n < arguments.size(); ++n) {
    const std::string& word = arguments[n];
    const bool has_next = n + 1 < arguments.size();
    if (word == "-o" && has_next) {
      given.add_options(arguments[++n]);
    } else if (word == "-t" && has_next) {
      ++n;
    } else if (is_letters(word)) {
      given.add_letters(std::string_view(word).substr(1));
    } else if (word.starts_with('-')) {
      given.flags.push_back(word);
    } else {
      given.places.push_back(word);
    }
  }
  // fstab cannot leave the source out: "all", "none" and "millrace" stand for the whole tree.
  std::vector<std::string>& places = given.places;
  if (places.size() == 2 &&
      (places[0] == "all" || places[0] == "none" || places[0] == "millrace")) {
    places.erase(places.begin());
  }
  std::vector<std::string> line = std::move(given.settings);
  // "mount -a" comes for what is mounted, too: it knows a mount by its source, which we write out.
  line.insert(line.end(), {"mount", "--unless-mounted"});
  line.insert(line.end(), places.begin(), places.end());
  line.insert(line.end(), given.flags.begin(), given.flags.end());
  if (!given.options.empty()) line.insert(line.end(), {"-o", given.options});
  return line;
}

}  // namespace millrace::cli
