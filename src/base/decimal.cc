#include "base/decimal.h"

#include <fmt/format.h>

namespace millrace {

namespace {

__extension__ using Wide = unsigned __int128;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count]))
    ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

std::optional<std::uint64_t> digits_value(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, static_cast<std::uint64_t>(c - '0'), &value)) {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

std::optional<std::uint64_t> Decimal::times(std::uint64_t unit) const {
  const Wide value = Wide{whole} * unit + Wide{fraction} * unit / fraction_scale;
  if (value > UINT64_MAX) return std::nullopt;
  return static_cast<std::uint64_t>(value);
}

std::optional<Decimal> take_decimal(std::string_view& text) {
  constexpr std::size_t kDecimalsMax = 18;  // 10^18 is the last power of ten below 2^63.
  std::string_view rest = text;
  const std::string_view whole_digits = take_digits(rest);
  const auto whole = digits_value(whole_digits);
  if (whole_digits.empty() || !whole) return std::nullopt;
  Decimal decimal{.whole = *whole};
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    const std::string_view decimals = take_digits(rest);
    if (decimals.empty() || decimals.size() > kDecimalsMax) return std::nullopt;
    decimal.fraction = *digits_value(decimals);
    for (std::size_t i = 0; i < decimals.size(); ++i)
      decimal.fraction_scale *= 10;
  }
  text = rest;
  return decimal;
}

std::string format_ratio(std::uint64_t value, std::uint64_t unit) {
  const Wide hundredths = (Wide{value} * 100 + unit / 2) / unit;
  std::string text;
  if (hundredths < 1000) {
    text = fmt::format("{}.{:02}", static_cast<std::uint64_t>(hundredths / 100),
                       static_cast<std::uint64_t>(hundredths % 100));
  } else if (const Wide tenths = (Wide{value} * 10 + unit / 2) / unit; tenths < 1000) {
    text = fmt::format("{}.{}", static_cast<std::uint64_t>(tenths / 10),
                       static_cast<std::uint64_t>(tenths % 10));
  } else {
    return fmt::format("{}", static_cast<std::uint64_t>((Wide{value} + unit / 2) / unit));
  }
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::unexpected<Status> bad_value(std::string_view text, std::string_view why) {
  // What came from outside may be long; the start of it is enough to find it again.
  constexpr std::size_t kQuotedMax = 64;
  const std::string_view end = text.size() > kQuotedMax ? "..." : "";
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}{}' {}", text.substr(0, kQuotedMax), end, why));
}

}  // namespace millrace
