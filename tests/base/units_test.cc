#include "base/units.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

TEST(ParseSize, TakesEveryDescribedForm) {
  const std::vector<std::pair<std::string_view, std::uint64_t>> cases = {
      {"0", 0},
      {"4096", 4096},
      {"64KiB", 64 * kKiB},
      {"4 MiB", 4 * kMiB},
      {"1.5GiB", kGiB * 3 / 2},
      {"1kB", 1000},
      {"10GB", 10'000'000'000},
      {"4M", 4 * kMiB},
      {"4m", 4 * kMiB},
      {"2TIB", 2 * kTiB},
      {"7b", 7},
      {"1PiB", 1024 * kTiB},
      {"0.001kB", 1},
      {"18446744073709551615", UINT64_MAX},
      {"15.5EiB", 31 * (std::uint64_t{1} << 59)},
  };
  for (const auto& [text, want] : cases) {
    const auto got = parse_size(text);
    ASSERT_TRUE(got) << text << ": " << got.error().to_string();
    EXPECT_EQ(*got, want) << text;
  }
}

TEST(ParseSize, RefusesAndSaysWhatIsAccepted) {
  EXPECT_EQ(parse_size("4 parsecs").error().message(),
            "'4 parsecs' is not a size: expected a number with an optional unit such as 64KiB, "
            "4MiB or 1.5GiB");
  for (const std::string_view text : {"",
                                      "KiB",
                                      "-1",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "1.5",
                                      "1.5B",
                                      "1..5M",
                                      "1e3",
                                      "4MiBs",
                                      "4 M iB",
                                      " 4",
                                      "4 MiB ",
                                      "0x10",
                                      "16EiB",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "1,5GiB",
                                      "1.1234567890123456789GiB",
                                      "80%"}) {
    const auto got = parse_size(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error(), StatusCode::kInvalidArgument);
  }
  EXPECT_LT(parse_size(std::string(100'000, 'x')).error().message().size(), 300U);
}

TEST(FormatSize, IsShort) {
  const std::vector<std::pair<std::uint64_t, std::string_view>> cases = {
      {0, "0 B"},
      {300, "300 B"},
      {1023, "1023 B"},
      {kKiB, "1 KiB"},
      {4 * kMiB, "4 MiB"},
      {kGiB * 3 / 2, "1.5 GiB"},
      {1'234'567, "1.18 MiB"},
      {kMiB - 1, "1 MiB"},
      {100 * kGiB + 300 * kMiB, "100 GiB"},
      {UINT64_MAX, "16 EiB"},
  };
  for (const auto& [bytes, want] : cases)
    EXPECT_EQ(format_size(bytes), want) << bytes;
}

TEST(FormatSize, ParsesBackToAboutTheSame) {
  SeededRandom random(5);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t bytes = random.next() >> (1 + random.next() % 63);
    const std::string text = format_size(bytes);
    const auto back = parse_size(text);
    ASSERT_TRUE(back) << text;
    ASSERT_NEAR(static_cast<double>(*back), static_cast<double>(bytes),
                static_cast<double>(bytes) * 0.0051)
        << text;
    ASSERT_EQ(format_size(*back), text) << "the form is stable";
  }
}

TEST(ParseDuration, TakesEveryDescribedForm) {
  const std::vector<std::pair<std::string_view, Duration>> cases = {
      {"250ms", 250ms},
      {"30s", 30s},
      {"5m", 5min},
      {"1h30m", 90min},
      {"30d", 720h},
      {"2w", 336h},
      {"7us", 7us},
      {"9ns", 9ns},
      {"1.5s", 1500ms},
      {"0s", 0s},
      {"1d1h", 25h},
      {"1m0.5s", 60'500ms},
      {"106751d", std::chrono::hours(24 * 106751)},
  };
  for (const auto& [text, want] : cases) {
    const auto got = parse_duration(text);
    ASSERT_TRUE(got) << text << ": " << got.error().to_string();
    EXPECT_EQ(*got, want) << text;
  }
}

TEST(ParseDuration, RefusesAndSaysWhatIsAccepted) {
  EXPECT_EQ(parse_duration("10").error().message(),
            "'10' is not a duration: expected numbers with units such as 250ms, 30s, 5m, 1h30m, "
            "30d or 2w");
  for (const std::string_view text : {"", "s", "10", "-5s", "5S", "5 s", "30m1h", "1h1h", "5s5",
                                      "1y", "5s ", "1.s", "106752d", "99999999999999999999s"}) {
    const auto got = parse_duration(text);
    ASSERT_FALSE(got) << text;
    EXPECT_EQ(got.error(), StatusCode::kInvalidArgument);
  }
}

TEST(FormatDuration, IsShort) {
  const std::vector<std::pair<Duration, std::string_view>> cases = {
      {0ns, "0s"},
      {9ns, "9ns"},
      {1500ns, "1.5us"},
      {250ms, "250ms"},
      {1500ms, "1.5s"},
      {999'999us, "1s"},
      {59'999ms, "1m"},
      {90s, "1m30s"},
      {2h + 5min, "2h5m"},
      {59min + 59'600ms, "1h"},
      {23h + 59min + 40s, "1d"},
      {720h, "30d"},
      {25h, "1d1h"},
      {-90s, "-1m30s"},
  };
  for (const auto& [duration, want] : cases) {
    EXPECT_EQ(format_duration(duration), want);
  }
  EXPECT_EQ(format_duration(Duration::min()), "-106752d") << "it has no positive twin";
}

TEST(FormatDuration, ParsesBackToAboutTheSame) {
  SeededRandom random(6);
  for (int i = 0; i < 10'000; ++i) {
    const auto ns = static_cast<std::int64_t>(random.next() >> (2 + random.next() % 62));
    const std::string text = format_duration(Duration(ns));
    const auto back = parse_duration(text);
    ASSERT_TRUE(back) << text;
    ASSERT_NEAR(static_cast<double>(back->count()), static_cast<double>(ns),
                static_cast<double>(ns) * 0.021)
        << text;
    ASSERT_EQ(format_duration(*back), text) << "the form is stable";
  }
}

TEST(Percentage, ParsesAndApplies) {
  EXPECT_EQ(parse_percentage("80%")->of(1000), 800U);
  EXPECT_EQ(parse_percentage("2.5 %")->of(1000), 25U);
  EXPECT_EQ(parse_percentage("0%")->of(UINT64_MAX), 0U);
  EXPECT_EQ(parse_percentage("100%")->of(UINT64_MAX), UINT64_MAX);
  EXPECT_LE(parse_percentage("99.999999999999999999%").value_or(Percentage{100}).of(UINT64_MAX),
            UINT64_MAX);
  EXPECT_EQ(parse_percentage("50%")->of(kTiB), kTiB / 2);
  for (const std::string_view text : {"", "%", "80", "101%", "100.1%", "-1%", "80%%", "8 0%"}) {
    EXPECT_FALSE(parse_percentage(text)) << text;
  }
}

TEST(SizeOrPercentage, TakesBoth) {
  EXPECT_EQ(std::get<std::uint64_t>(*parse_size_or_percentage("4MiB")), 4 * kMiB);
  EXPECT_EQ(std::get<Percentage>(*parse_size_or_percentage("80%")).percent, 80);
  EXPECT_NE(parse_size_or_percentage("much").error().message().find("80%"), std::string::npos);
  EXPECT_FALSE(parse_size_or_percentage("180%"));
}

}  // namespace
}  // namespace millrace
