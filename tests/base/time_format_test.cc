#include "base/time_format.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;

constexpr WallTime kMoment{std::chrono::milliseconds(1'767'323'045'678)};

TEST(TimeFormat, Forms) {
  EXPECT_EQ(format_http_date(kMoment), "Fri, 02 Jan 2026 03:04:05 GMT");
  EXPECT_EQ(format_iso8601_basic(kMoment), "20260102T030405Z");
  EXPECT_EQ(format_iso8601(kMoment), "2026-01-02T03:04:05.678Z");
  EXPECT_EQ(format_iso8601(WallTime(-1ms)), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(format_iso8601(WallTime::min()), "1677-09-21T00:12:43.145Z");
  EXPECT_EQ(format_iso8601(WallTime::max()), "2262-04-11T23:47:16.854Z");
}

TEST(TimeFormat, ParsesItsForms) {
  const WallTime seconds = std::chrono::floor<std::chrono::seconds>(kMoment);
  EXPECT_EQ(parse_http_date("Fri, 02 Jan 2026 03:04:05 GMT"), seconds);
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), WallTime(784'111'777s));
  EXPECT_EQ(parse_iso8601_basic("20260102T030405Z"), seconds);
  EXPECT_EQ(parse_iso8601("2026-01-02T03:04:05.678Z"), kMoment);
  EXPECT_EQ(parse_iso8601("2026-01-02T03:04:05Z"), seconds);
  EXPECT_EQ(parse_iso8601("2026-01-02T03:04:05.123456789Z"), seconds + 123'456'789ns);
  EXPECT_EQ(parse_iso8601("2026-01-02T05:34:05+02:30"), seconds);
  EXPECT_EQ(parse_iso8601("2026-01-01T22:04:05-05:00"), seconds);
  EXPECT_TRUE(parse_iso8601("2024-02-29T00:00:00Z"));
}

TEST(TimeFormat, RefusesWhatIsNotExactlyTheForm) {
  for (const std::string_view bad :
       {"", "Thu, 02 Jan 2026 03:04:05 GMT", "Fri, 2 Jan 2026 03:04:05 GMT",
        "Fri, 02 Jan 2026 03:04:05 UTC", "Fri, 02 Jan 2026 03:04:05 GMT ",
        "fri, 02 jan 2026 03:04:05 GMT", "Fri, 32 Jan 2026 03:04:05 GMT",
        "Fri, 02 Jan 2026 24:04:05 GMT", "Friday, 02-Jan-26 03:04:05 GMT"}) {
    EXPECT_EQ(parse_http_date(bad).error(), StatusCode::kInvalidArgument) << bad;
  }
  for (const std::string_view bad :
       {"", "20260102T030405", "20260102T030405Z0", "2026-0102T030405Z", "20260230T030405Z",
        "20260102T036005Z", "20260102T030460Z", "00000101T000000Z", "16770101T000000Z",
        "22620101T000000Z", "20260002T030405Z"}) {
    EXPECT_EQ(parse_iso8601_basic(bad).error(), StatusCode::kInvalidArgument) << bad;
  }
  for (const std::string_view bad :
       {"", "2026-01-02", "2026-01-02T03:04:05", "2026-01-02 03:04:05Z", "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567890Z", "2025-02-29T00:00:00Z", "2026-01-02T03:04:05+24:00",
        "2026-01-02T03:04:05+0200", "2026-01-02T03:04:05ZZ", "-026-01-02T03:04:05Z"}) {
    EXPECT_EQ(parse_iso8601(bad).error(), StatusCode::kInvalidArgument) << bad;
  }
}

TEST(TimeFormat, RoundTrips) {
  SeededRandom random(12);
  constexpr std::int64_t kMsMax = 9'214'646'400'000;  // 2262-01-01.
  for (int i = 0; i < 5000; ++i) {
    const auto ms = static_cast<std::int64_t>(random.next() % (2 * kMsMax)) - kMsMax;
    const WallTime time{std::chrono::milliseconds(ms)};
    const WallTime seconds = std::chrono::floor<std::chrono::seconds>(time);
    ASSERT_EQ(parse_iso8601(format_iso8601(time)), time) << ms;
    ASSERT_EQ(parse_http_date(format_http_date(time)), seconds) << ms;
    ASSERT_EQ(parse_iso8601_basic(format_iso8601_basic(time)), seconds) << ms;
  }
}

TEST(TimeFormat, TakesAnyBytes) {
  SeededRandom random(13);
  const std::string good = "2026-01-02T03:04:05.678+00:00";
  for (int i = 0; i < 20'000; ++i) {
    std::string text = good.substr(0, random.next() % (good.size() + 1));
    if (!text.empty()) text[random.next() % text.size()] = static_cast<char>(random.next());
    (void)parse_iso8601(text);
    (void)parse_iso8601_basic(text);
    (void)parse_http_date(text);
  }
}

}  // namespace
}  // namespace millrace
