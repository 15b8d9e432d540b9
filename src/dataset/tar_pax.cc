#include "dataset/tar_pax.h"

#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "dataset/tar_format.h"
#include "dataset/tar_header.h"

namespace millrace {
namespace {

Status bad_record(std::string_view key, std::string_view why) {
  return Status(StatusCode::kCorruption, fmt::format("the pax record '{}' {}", key, why));
}

std::optional<std::uint64_t> decimal_digits(std::string_view text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stopped != end || text.empty()) return std::nullopt;
  return value;
}

// "1234567890.123456789" in nanoseconds; further digits are dropped. Times that 64 bits of
// nanoseconds cannot hold are cut to the first or last that they can.
std::optional<std::int64_t> decimal_time(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  const std::size_t dot = text.find('.');
  const auto seconds = decimal_digits(text.substr(0, dot));
  if (!seconds) return std::nullopt;
  std::uint64_t fraction = 0;
  if (dot != std::string_view::npos) {
    std::string digits(text.substr(dot + 1));
    if (digits.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
    digits.resize(9, '0');
    fraction = decimal_digits(digits).value_or(0);
  }
  constexpr std::uint64_t kSecondsMax =
      std::numeric_limits<std::int64_t>::max() / 1'000'000'000 - 1;
  if (*seconds > kSecondsMax) {
    return negative ? std::numeric_limits<std::int64_t>::min()
                    : std::numeric_limits<std::int64_t>::max();
  }
  const auto magnitude = static_cast<std::int64_t>(*seconds * 1'000'000'000 + fraction);
  return negative ? -magnitude : magnitude;
}

Status set_text(std::string_view key, std::string_view value, std::optional<std::string>& into) {
  if (value.size() >= kTarPathBytesMax) {
    return Status(StatusCode::kUnsupported,
                  fmt::format("the pax record '{}' has {} bytes, the most is {}", key, value.size(),
                              kTarPathBytesMax - 1));
  }
  if (value.find('\0') != std::string_view::npos) return bad_record(key, "has a NUL");
  into = value;
  return {};
}

Status set_attribute(std::string_view key, std::string_view value, TarAttributes& attributes) {
  if (key.starts_with("GNU.sparse.")) {
    return Status(StatusCode::kUnsupported, "sparse members cannot be read");
  }
  if (key == "path") {
    if (value.empty()) return attributes.path.reset(), Status();
    return set_text(key, value, attributes.path);
  }
  if (key == "linkpath") {
    if (value.empty()) return attributes.link_target.reset(), Status();
    return set_text(key, value, attributes.link_target);
  }
  if (key == "size") {
    if (value.empty()) return attributes.size.reset(), Status();
    attributes.size = decimal_digits(value);
    if (!attributes.size || *attributes.size > kTarMemberBytesMax) {
      return bad_record(key, "is no size");
    }
  }
  if (key == "mtime") {
    if (value.empty()) return attributes.mtime_ns.reset(), Status();
    attributes.mtime_ns = decimal_time(value);
    if (!attributes.mtime_ns) return bad_record(key, "is no time");
  }
  return {};
}

}  // namespace

void TarAttributes::override_by(const TarAttributes& later) {
  if (later.path) path = later.path;
  if (later.link_target) link_target = later.link_target;
  if (later.size) size = later.size;
  if (later.mtime_ns) mtime_ns = later.mtime_ns;
}

Status parse_pax_records(std::string_view records, TarAttributes& attributes) {
  while (!records.empty()) {
    const std::size_t space = records.substr(0, 20).find(' ');
    const auto length = decimal_digits(records.substr(0, space));
    // Digits, the space, a key of one byte, '=' and the line feed.
    if (space == std::string_view::npos || !length || *length > records.size() ||
        *length < space + 4) {
      return Status(StatusCode::kCorruption, "a pax record has no valid length");
    }
    const std::string_view record = records.substr(space + 1, *length - space - 1);
    records.remove_prefix(*length);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || equals == 0 || !record.ends_with('\n')) {
      return Status(StatusCode::kCorruption, "a pax record is not of the form key=value");
    }
    MR_RETURN_IF_ERROR(set_attribute(record.substr(0, equals),
                                     record.substr(equals + 1, record.size() - equals - 2),
                                     attributes));
  }
  return {};
}

}  // namespace millrace
