#include "base/checked_line.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/checksum.h"

namespace millrace {
namespace {

constexpr std::size_t kCheckedDigits = 8;

std::string checked_digits(std::string_view text) {
  return fmt::format("{:08x}", crc32c(as_bytes(text)));
}

}  // namespace

std::string checked_line(std::string_view text) {
  return fmt::format("{} {}\n", checked_digits(text), text);
}

std::optional<std::string_view> checked_text(std::string_view line) {
  if (line.size() <= kCheckedDigits || line[kCheckedDigits] != ' ') return std::nullopt;
  const std::string_view text = line.substr(kCheckedDigits + 1);
  if (checked_digits(text) != line.substr(0, kCheckedDigits)) return std::nullopt;
  return text;
}

}  // namespace millrace
