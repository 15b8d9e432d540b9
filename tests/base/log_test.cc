#include "base/log.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/log_line.h"
#include "base/random.h"
#include "base/utf8.h"

namespace millrace {
namespace {

constexpr WallTime kTime{std::chrono::milliseconds(1'767'323'045'678)};

std::string text_line(std::string_view message, std::initializer_list<LogField> fields) {
  return render_log_line(LogFormat::kText, kTime, LogLevel::kWarn, message, fields);
}
std::string json_line(std::string_view message, std::initializer_list<LogField> fields) {
  return render_log_line(LogFormat::kJson, kTime, LogLevel::kInfo, message, fields);
}

TEST(LogLine, Text) {
  EXPECT_EQ(text_line("slow read", {{"key", "value"}, {"key2", "with space"}, {"n", 3}}),
            "2026-01-02T03:04:05.678Z warn slow read key=value key2=\"with space\" n=3");
  EXPECT_EQ(text_line("m", {{"a", ""}, {"b", "x=y"}, {"c", "q\"\\"}, {"d", true}, {"e", 0.5}}),
            R"(2026-01-02T03:04:05.678Z warn m a="" b="x=y" c="q\"\\" d=true e=0.5)");
}

TEST(LogLine, TextCannotSteerATerminalOrForgeALine) {
  EXPECT_EQ(text_line("a\nb", {{"k", "\x1b[2J\r\n\t\x7f"}}),
            R"(2026-01-02T03:04:05.678Z warn a\nb k="\x1b[2J\r\n\t\x7f")");
  EXPECT_EQ(text_line("m", {{"k", "\xff\xc2\x9b\xc3\xa9"}}),
            "2026-01-02T03:04:05.678Z warn m k=\"\\xff\\xc2\\x9b\xc3\xa9\"");
}

TEST(LogLine, Json) {
  EXPECT_EQ(json_line("m", {{"s", "a\"b\\\n\x01"}, {"n", -7}, {"t", false}, {"d", 1.5}}),
            R"({"time":"2026-01-02T03:04:05.678Z","level":"info","message":"m",)"
            R"("s":"a\"b\\\n\u0001","n":-7,"t":false,"d":1.5})");
  EXPECT_EQ(json_line("m", {{"bad", "a\xff\xed\xa0\x80z"}}).substr(64),
            "\"bad\":\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\"}");
  EXPECT_NE(json_line("m", {{"d", std::numeric_limits<double>::quiet_NaN()}}).find("\"nan\""),
            std::string::npos);
}

TEST(LogLine, IsOneValidLineForAnyBytes) {
  SeededRandom random(9);
  for (int round = 0; round < 500; ++round) {
    std::string value;
    for (std::uint64_t i = random.next() % 40; i > 0; --i) {
      value += static_cast<char>(random.next());
    }
    for (const std::string& line :
         {text_line(value, {{"k", value}}), json_line(value, {{"k", value}})}) {
      std::string_view rest = line;
      while (!rest.empty()) {
        const std::size_t length = utf8_sequence_length(rest);
        ASSERT_GT(length, 0U) << line;
        ASSERT_FALSE(length == 1 && static_cast<unsigned char>(rest[0]) < 0x20) << line;
        rest.remove_prefix(length);
      }
    }
  }
}

TEST(Utf8, KnowsWellFormedSequences) {
  EXPECT_EQ(utf8_sequence_length(""), 0U);
  EXPECT_EQ(utf8_sequence_length("a"), 1U);
  EXPECT_EQ(utf8_sequence_length("\xc3\xa9"), 2U);
  EXPECT_EQ(utf8_sequence_length("\xe2\x82\xac"), 3U);
  EXPECT_EQ(utf8_sequence_length("\xf0\x9f\x98\x80"), 4U);
  for (const std::string_view bad : {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                                     "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff", "\xe2\x82z"}) {
    EXPECT_EQ(utf8_sequence_length(bad), 0U);
  }
}

TEST(Log, CaptureKeepsLinesAndPutsTheLevelBack) {
  set_log_level(LogLevel::kWarn);
  {
    const LogCapture capture(LogLevel::kInfo);
    log_debug("too small");
    log_info("info line", {{"n", 1}});
    log_error("error line");
    const std::string text = capture.text();
    EXPECT_EQ(text.find("too small"), std::string::npos);
    EXPECT_NE(text.find(" info info line n=1\n"), std::string::npos);
    EXPECT_NE(text.find(" error error line\n"), std::string::npos);
    {
      const LogCapture inner;
      log_debug("inner");
      EXPECT_NE(inner.text().find("inner"), std::string::npos);
    }
    EXPECT_EQ(capture.text(), text);
  }
  EXPECT_TRUE(log_enabled(LogLevel::kWarn));
  EXPECT_FALSE(log_enabled(LogLevel::kInfo));
}

TEST(Log, OffSilencesEverything) {
  const LogCapture capture(LogLevel::kOff);
  log_error("nothing");
  log(LogLevel::kOff, "nothing");
  EXPECT_EQ(capture.text(), "");
}

TEST(Log, GoesToStandardErrorInTheChosenFormat) {
  testing::internal::CaptureStderr();
  log_warn("text line");
  set_log_format(LogFormat::kJson);
  log_warn("json line");
  set_log_format(LogFormat::kText);
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find(" warn text line\n"), std::string::npos);
  EXPECT_NE(written.find("\"message\":\"json line\"}\n"), std::string::npos);
}

TEST(Log, LinesOfManyThreadsStayWhole) {
  const LogCapture capture;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i)
        log_info("line", {{"i", i}});
    });
  }
  for (auto& thread : threads)
    thread.join();
  const std::string text = capture.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 200);
}

}  // namespace
}  // namespace millrace
