#include "base/units.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/decimal.h"

namespace millrace {

namespace {

struct SizeUnit {
  std::string_view name;  // In lower case.
  std::uint64_t bytes;
};

constexpr std::array kSizeUnits = {
    SizeUnit{"", 1},
    SizeUnit{"b", 1},
    SizeUnit{"k", kKiB},
    SizeUnit{"kib", kKiB},
    SizeUnit{"kb", 1'000},
    SizeUnit{"m", kMiB},
    SizeUnit{"mib", kMiB},
    SizeUnit{"mb", 1'000'000},
    SizeUnit{"g", kGiB},
    SizeUnit{"gib", kGiB},
    SizeUnit{"gb", 1'000'000'000},
    SizeUnit{"t", kTiB},
    SizeUnit{"tib", kTiB},
    SizeUnit{"tb", 1'000'000'000'000},
    SizeUnit{"p", 1024 * kTiB},
    SizeUnit{"pib", 1024 * kTiB},
    SizeUnit{"pb", 1'000'000'000'000'000},
    SizeUnit{"e", 1024 * 1024 * kTiB},
    SizeUnit{"eib", 1024 * 1024 * kTiB},
    SizeUnit{"eb", 1'000'000'000'000'000'000},
};

std::optional<std::uint64_t> size_unit(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const auto found = std::ranges::find(kSizeUnits, lower, &SizeUnit::name);
  if (found == kSizeUnits.end()) return std::nullopt;
  return found->bytes;
}

void skip_spaces(std::string_view& text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
}

}  // namespace

Result<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kExpected =
      "is not a size: expected a number with an optional unit such as 64KiB, 4MiB or 1.5GiB";
  std::string_view rest = text;
  const auto number = take_decimal(rest);
  if (!number) return bad_value(text, kExpected);
  skip_spaces(rest);
  const auto unit = size_unit(rest);
  if (!unit || (*unit == 1 && number->fraction_scale != 1)) return bad_value(text, kExpected);
  const auto bytes = number->times(*unit);
  if (!bytes) return bad_value(text, "is too large: a size is below 16EiB");
  return *bytes;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kNames = {"B",   "KiB", "MiB", "GiB",
                                                      "TiB", "PiB", "EiB"};
  std::uint64_t unit = 1;
  std::size_t index = 0;
  while (index + 1 < kNames.size() && bytes / 1024 >= unit) {
    unit *= 1024;
    ++index;
  }
  std::string number = format_ratio(bytes, unit);
  // What rounds up to the next unit is said in it: "1 MiB", not "1024 KiB".
  if (number == "1024" && index + 1 < kNames.size()) {
    number = "1";
    ++index;
  }
  return fmt::format("{} {}", number, kNames[index]);
}

std::uint64_t Percentage::of(std::uint64_t whole) const {
  if (percent >= 100) return whole;
  if (!(percent > 0)) return 0;
  // Below 100 % the product is below 2^64 even after rounding, as long double has 64 bits or more
  // where we run; min() says so to machines where it has not.
  const long double part =
      static_cast<long double>(whole) * (static_cast<long double>(percent) / 100);
  return part >= static_cast<long double>(whole) ? whole : static_cast<std::uint64_t>(part);
}

Result<Percentage> parse_percentage(std::string_view text) {
  std::string_view rest = text;
  const auto number = take_decimal(rest);
  skip_spaces(rest);
  if (!number || rest != "%" || number->whole > 100 ||
      (number->whole == 100 && number->fraction != 0)) {
    return bad_value(text, "is not a percentage: expected 0% to 100%, such as 80% or 2.5%");
  }
  return Percentage{static_cast<double>(number->whole) +
                    static_cast<double>(number->fraction) /
                        static_cast<double>(number->fraction_scale)};
}

Result<SizeOrPercentage> parse_size_or_percentage(std::string_view text) {
  if (text.ends_with('%')) {
    MR_ASSIGN_OR_RETURN(const Percentage percentage, parse_percentage(text));
    return percentage;
  }
  const auto size = parse_size(text);
  if (!size)
    return failure(size.error().code(), size.error().message() + ", or a share such as 80%");
  return *size;
}

}  // namespace millrace
