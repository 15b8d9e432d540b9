#include "base/time_format.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include <fmt/format.h>

namespace millrace {

namespace {

constexpr std::array<std::string_view, 7> kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<std::string_view, 12> kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

struct CivilTime {
  int year;
  unsigned month;
  unsigned day;
  unsigned weekday;  // 0 is Sunday.
  int hour;
  int minute;
  int second;
  int millisecond;
};

CivilTime to_civil(WallTime time) {
  using namespace std::chrono;
  const auto day = floor<days>(time);
  const year_month_day date(day);
  // In milliseconds: in nanoseconds, the start of the first day that WallTime reaches is out of
  // range.
  const hh_mm_ss<milliseconds> clock(floor<milliseconds>(time) - day);
  return {.year = static_cast<int>(date.year()),
          .month = static_cast<unsigned>(date.month()),
          .day = static_cast<unsigned>(date.day()),
          .weekday = weekday(day).c_encoding(),
          .hour = static_cast<int>(clock.hours().count()),
          .minute = static_cast<int>(clock.minutes().count()),
          .second = static_cast<int>(clock.seconds().count()),
          .millisecond = static_cast<int>(clock.subseconds().count())};
}

// Reads a text from left to right. After the first mismatch everything fails and nothing is read.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  int digits(std::size_t count) {
    if (rest_.size() < count) return fail();
    int value = 0;
    for (const char c : rest_.substr(0, count)) {
      if (c < '0' || c > '9') return fail();
      value = value * 10 + (c - '0');
    }
    rest_.remove_prefix(count);
    return value;
  }
  void literal(std::string_view text) {
    if (!take(text)) fail();
  }
  // Takes `text` if it comes next.
  bool take(std::string_view text) {
    if (!ok_ || !rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // The index of the name that comes next.
  template <std::size_t kCount>
  unsigned name(const std::array<std::string_view, kCount>& names) {
    for (unsigned i = 0; i < kCount; ++i) {
      if (take(names[i])) return i;
    }
    fail();
    return 0;
  }
  bool digit_next() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }
  // True when all was as expected and nothing is left.
  bool done() const { return ok_ && rest_.empty(); }

 private:
  int fail() {
    ok_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool ok_ = true;
};

std::optional<WallTime> from_civil(int year, unsigned month, unsigned day, int hour, int minute,
                                   int second) {
  constexpr int kYearMin = 1678;
  constexpr int kYearMax = 2261;
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!date.ok() || year < kYearMin || year > kYearMax) return std::nullopt;
  if (hour > 23 || minute > 59 || second > 59) return std::nullopt;
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(hour) +
         std::chrono::minutes(minute) + std::chrono::seconds(second);
}

std::unexpected<Status> bad(std::string_view form) {
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("not a valid time: expected the form '{}'", form));
}

// The decimals after a point, in nanoseconds.
Duration read_fraction(Reader& reader) {
  int ns = 0;
  int scale = 1'000'000'000;
  do {
    scale /= 10;
    ns += reader.digits(1) * scale;
  } while (scale > 1 && reader.digit_next());
  return Duration(ns);
}

// "Z", "+hh:mm" or "-hh:mm": how far local time is ahead of UTC.
Duration read_offset(Reader& reader) {
  if (reader.take("Z")) return Duration(0);
  const bool behind = reader.take("-");
  if (!behind) reader.literal("+");
  const int hours = reader.digits(2);
  reader.literal(":");
  const int minutes = reader.digits(2);
  if (hours > 23 || minutes > 59) reader.literal("a smaller offset");
  const Duration offset = std::chrono::hours(hours) + std::chrono::minutes(minutes);
  return behind ? -offset : offset;
}

}  // namespace

std::string format_http_date(WallTime time) {
  const CivilTime t = to_civil(time);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[t.weekday], t.day,
                     kMonths[t.month - 1], t.year, t.hour, t.minute, t.second);
}

Result<WallTime> parse_http_date(std::string_view text) {
  Reader reader(text);
  const unsigned weekday = reader.name(kDays);
  reader.literal(", ");
  const int day = reader.digits(2);
  reader.literal(" ");
  const unsigned month = reader.name(kMonths) + 1;
  reader.literal(" ");
  const int year = reader.digits(4);
  reader.literal(" ");
  const int hour = reader.digits(2);
  reader.literal(":");
  const int minute = reader.digits(2);
  reader.literal(":");
  const int second = reader.digits(2);
  reader.literal(" GMT");
  const auto time = from_civil(year, month, static_cast<unsigned>(day), hour, minute, second);
  if (!reader.done() || !time || to_civil(*time).weekday != weekday) {
    return bad("Fri, 02 Jan 2026 03:04:05 GMT");
  }
  return *time;
}

std::string format_iso8601_basic(WallTime time) {
  const CivilTime t = to_civil(time);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", t.year, t.month, t.day, t.hour, t.minute,
                     t.second);
}

Result<WallTime> parse_iso8601_basic(std::string_view text) {
  Reader reader(text);
  const int year = reader.digits(4);
  const int month = reader.digits(2);
  const int day = reader.digits(2);
  reader.literal("T");
  const int hour = reader.digits(2);
  const int minute = reader.digits(2);
  const int second = reader.digits(2);
  reader.literal("Z");
  const auto time = from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day), hour,
                               minute, second);
  if (!reader.done() || !time) return bad("20260102T030405Z");
  return *time;
}

std::string format_iso8601(WallTime time) {
  const CivilTime t = to_civil(time);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", t.year, t.month, t.day, t.hour,
                     t.minute, t.second, t.millisecond);
}

Result<WallTime> parse_iso8601(std::string_view text) {
  Reader reader(text);
  const int year = reader.digits(4);
  reader.literal("-");
  const int month = reader.digits(2);
  reader.literal("-");
  const int day = reader.digits(2);
  reader.literal("T");
  const int hour = reader.digits(2);
  reader.literal(":");
  const int minute = reader.digits(2);
  reader.literal(":");
  const int second = reader.digits(2);
  const Duration fraction = reader.take(".") ? read_fraction(reader) : Duration(0);
  const Duration offset = read_offset(reader);
  const auto time = from_civil(year, static_cast<unsigned>(month), static_cast<unsigned>(day), hour,
                               minute, second);
  if (!reader.done() || !time) return bad("2026-01-02T03:04:05.678Z");
  return *time + fraction - offset;
}

}  // namespace millrace
