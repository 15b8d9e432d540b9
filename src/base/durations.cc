// The half of base/units.h that deals with time.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/decimal.h"
#include "base/units.h"

namespace millrace {

namespace {

struct TimeUnit {
  std::string_view name;
  std::uint64_t ns;
};

constexpr std::uint64_t kUs = 1'000;
constexpr std::uint64_t kMs = 1'000 * kUs;
constexpr std::uint64_t kSecond = 1'000 * kMs;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;

constexpr std::array kTimeUnits = {
    TimeUnit{"w", 7 * kDay}, TimeUnit{"d", kDay}, TimeUnit{"h", kHour}, TimeUnit{"m", kMinute},
    TimeUnit{"s", kSecond},  TimeUnit{"ms", kMs}, TimeUnit{"us", kUs},  TimeUnit{"ns", 1},
};

std::string_view take_letters(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= 'a' && text[count] <= 'z')
    ++count;
  const std::string_view letters = text.substr(0, count);
  text.remove_prefix(count);
  return letters;
}

// Below a minute: one number in the largest unit that keeps it at 1 or above.
std::string format_short(std::uint64_t ns) {
  constexpr std::array kShort = {TimeUnit{"ns", 1}, TimeUnit{"us", kUs}, TimeUnit{"ms", kMs},
                                 TimeUnit{"s", kSecond}};
  std::size_t index = 0;
  while (index + 1 < kShort.size() && ns >= kShort[index + 1].ns)
    ++index;
  std::string number = format_ratio(ns, kShort[index].ns);
  if (number == "1000" && index + 1 < kShort.size()) {
    number = "1";
    ++index;
  }
  if (number == "60" && kShort[index].ns == kSecond) return "1m";
  return fmt::format("{}{}", number, kShort[index].name);
}

// From a minute on: the two largest units, the second one rounded.
std::string format_long(std::uint64_t ns) {
  const auto rounded = [ns](std::uint64_t unit) { return (ns + unit / 2) / unit * unit; };
  std::uint64_t shown = rounded(kSecond);
  TimeUnit large{"m", kMinute};
  TimeUnit small{"s", kSecond};
  if (shown >= kHour) {
    shown = rounded(kMinute);
    large = {"h", kHour};
    small = {"m", kMinute};
  }
  if (shown >= kDay) {
    shown = rounded(kHour);
    large = {"d", kDay};
    small = {"h", kHour};
  }
  const std::uint64_t rest = shown % large.ns / small.ns;
  const std::string text = fmt::format("{}{}", shown / large.ns, large.name);
  return rest == 0 ? text : fmt::format("{}{}{}", text, rest, small.name);
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  constexpr std::string_view kExpected =
      "is not a duration: expected numbers with units such as 250ms, 30s, 5m, 1h30m, 30d or 2w";
  constexpr std::uint64_t kMax = std::numeric_limits<Duration::rep>::max();
  std::uint64_t sum = 0;
  std::uint64_t last_unit =
      UINT64_MAX;  // Units go down, so that "30m1h" is seen as the slip it is.
  std::string_view rest = text;
  do {
    const auto number = take_decimal(rest);
    const std::string_view name = take_letters(rest);
    const auto unit = std::ranges::find(kTimeUnits, name, &TimeUnit::name);
    if (!number || unit == kTimeUnits.end() || unit->ns >= last_unit)
      return bad_value(text, kExpected);
    last_unit = unit->ns;
    const auto part = number->times(unit->ns);
    if (!part || *part > kMax - sum)
      return bad_value(text, "is too long: a duration is below 292 years");
    sum += *part;
  } while (!rest.empty());
  return Duration(static_cast<Duration::rep>(sum));
}

std::string format_duration(Duration duration) {
  const bool negative = duration.count() < 0;
  // The smallest Duration has no positive twin of its own type.
  const std::uint64_t ns = negative ? -static_cast<std::uint64_t>(duration.count())
                                    : static_cast<std::uint64_t>(duration.count());
  if (ns == 0) return "0s";
  return (negative ? "-" : "") + (ns < kMinute ? format_short(ns) : format_long(ns));
}

}  // namespace millrace
