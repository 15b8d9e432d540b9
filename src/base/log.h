#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace millrace {

enum class LogLevel : std::uint8_t { kDebug, kInfo, kWarn, kError, kOff };

// One named value of a log line. Rendered when made, so keep expensive ones behind log_enabled().
struct LogField {
  std::string_view key;
  std::string value;
  bool bare = false;  // A number or a truth value: not quoted in JSON.

  LogField(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false"), bare(true) {}
  LogField(std::string_view k, double v);
  template <std::integral T>
  LogField(std::string_view k, T v) : key(k), value(std::to_string(v)), bare(true) {}
};

// Lines below the level are dropped. It starts as MILLRACE_LOG says (debug, info, warn, error,
// off), else at kWarn, because a command line tool is quiet.
bool log_enabled(LogLevel level);
void set_log_level(LogLevel level);

// How lines look on standard error: "time level message key=value ..." for people, or one JSON
// object a line for machines.
enum class LogFormat : std::uint8_t { kText, kJson };
void set_log_format(LogFormat format);

// Writes one line: a constant message, and what varies as fields, so that lines can be counted and
// searched by message. Secrets never go into a field. Safe from any thread.
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

inline void log_debug(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kDebug, m, f);
}
inline void log_info(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kInfo, m, f);
}
inline void log_warn(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kWarn, m, f);
}
inline void log_error(std::string_view m, std::initializer_list<LogField> f = {}) {
  log(LogLevel::kError, m, f);
}

// Keeps lines from `level` on instead of writing them to standard error, until destroyed, so that a
// test can read them. The innermost of several gets the lines. The level is put back at the end.
class LogCapture {
 public:
  explicit LogCapture(LogLevel level = LogLevel::kDebug);
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;
  // The lines so far, each with its end of line.
  std::string text() const;

 private:
  friend class LogOutput;
  const LogLevel level_before_;
  std::string lines_;  // Guarded by the output's lock.
};

}  // namespace millrace
