#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace {

// One `name: value` of a config file.
struct ConfigEntry {
  std::string name;
  std::string value;
  int line = 0;  // From 1.
};

inline constexpr std::size_t kConfigFileBytesMax = 1024 * 1024;

// Reads a YAML mapping from names to plain values. Everything that a flat file does not need is
// refused with "file:line: sentence": nesting, anchors, aliases and tags (a few bytes of them can
// stand for gigabytes), names given twice, a second document.
Result<std::vector<ConfigEntry>> parse_config(std::string_view text, const std::string& file);

// kNotFound when there is no such file, kIoError when it cannot be read.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& file);

}  // namespace millrace
