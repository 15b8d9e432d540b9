#include "objectstore/s3/credentials_time.h"

#include <chrono>

#include <fmt/format.h>

namespace millrace::s3 {
namespace {

// Takes exactly `digits` digits off the front of `text`.
std::optional<int> take_number(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take_char(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

// A two-digit field in [0, max].
std::optional<int> take_field(std::string_view& text, int max) {
  const auto value = take_number(text, 2);
  if (!value || *value > max) return std::nullopt;
  return value;
}

std::optional<std::chrono::minutes> take_offset(std::string_view& text) {
  if (take_char(text, 'Z')) return std::chrono::minutes(0);
  if (text.empty() || (text.front() != '+' && text.front() != '-')) return std::nullopt;
  const int sign = text.front() == '-' ? -1 : 1;
  text.remove_prefix(1);
  const auto hours = take_field(text, 23);
  take_char(text, ':');
  const auto minutes = take_field(text, 59);
  if (!hours || !minutes) return std::nullopt;
  return std::chrono::minutes(sign * (*hours * 60 + *minutes));
}

}  // namespace

std::optional<WallTime> parse_iso8601(std::string_view text) {
  const auto year = take_number(text, 4);
  if (!year || !take_char(text, '-')) return std::nullopt;
  const auto month = take_field(text, 12);
  if (!month || !take_char(text, '-')) return std::nullopt;
  const auto day = take_field(text, 31);
  if (!day || !take_char(text, 'T')) return std::nullopt;
  const auto hour = take_field(text, 23);
  if (!hour || !take_char(text, ':')) return std::nullopt;
  const auto minute = take_field(text, 59);
  if (!minute || !take_char(text, ':')) return std::nullopt;
  const auto second = take_field(text, 60);
  if (!second) return std::nullopt;
  if (take_char(text, '.')) {
    if (!take_number(text, 1)) return std::nullopt;
    while (take_number(text, 1)) {
    }
  }
  const auto offset = take_offset(text);
  if (!offset || !text.empty()) return std::nullopt;

  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  // Nanoseconds in 64 bits end in the year 2262; "never expires" is often written as 9999.
  if (!date.ok() || *year < 1970) return std::nullopt;
  if (*year > 2200) return WallTime::max();
  return WallTime(std::chrono::sys_days(date) + std::chrono::hours(*hour) +
                  std::chrono::minutes(*minute) + std::chrono::seconds(*second) - *offset);
}

std::string format_iso8601(WallTime time) {
  const auto days = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(days);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - days));
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count());
}

}  // namespace millrace::s3
