#include "base/log.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <vector>

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/clock.h"
#include "base/log_line.h"
#include "base/mutex.h"

namespace millrace {

namespace {

std::optional<LogLevel> level_by_name(std::string_view name) {
  for (const LogLevel level :
       {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarn, LogLevel::kError, LogLevel::kOff}) {
    if (name == log_level_name(level)) return level;
  }
  return std::nullopt;
}

}  // namespace

// Where lines go. One for the process, never destroyed: statics may log while they are torn down.
class LogOutput {
 public:
  static LogOutput& get() {
    static auto* const output = new LogOutput;
    return *output;
  }

  void write(const std::string& line) {
    {
      MutexLock lock(mutex_);
      if (!captures_.empty()) {
        captures_.back()->lines_ += line + '\n';
        return;
      }
    }
    // The level was looked at before the line was made; spdlog writes it whole, under its own lock.
    logger_.log(spdlog::level::critical, line);
  }

  void add(LogCapture& capture) {
    MutexLock lock(mutex_);
    captures_.push_back(&capture);
  }
  void remove(const LogCapture& capture) {
    MutexLock lock(mutex_);
    std::erase(captures_, &capture);
  }
  std::string text(const LogCapture& capture) {
    MutexLock lock(mutex_);
    return capture.lines_;
  }

  std::atomic<LogLevel> level = LogLevel::kWarn;
  std::atomic<LogFormat> format = LogFormat::kText;

 private:
  LogOutput() : logger_("millrace", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger_.set_pattern("%v");
    const char* const wanted = std::getenv("MILLRACE_LOG");
    if (wanted == nullptr || *wanted == '\0') return;
    if (const auto named = level_by_name(wanted)) {
      level = *named;
    } else {
      write(render_log_line(LogFormat::kText, system_clock().wall_now(), LogLevel::kWarn,
                            "MILLRACE_LOG is not a level: expected debug, info, warn, error or off",
                            {{"value", wanted}}));
    }
  }

  spdlog::logger logger_;
  Mutex mutex_;
  std::vector<LogCapture*> captures_ MR_GUARDED_BY(mutex_);
};

bool log_enabled(LogLevel level) {
  return level != LogLevel::kOff && level >= LogOutput::get().level.load(std::memory_order_relaxed);
}

void set_log_level(LogLevel level) { LogOutput::get().level = level; }

void set_log_format(LogFormat format) { LogOutput::get().format = format; }

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (!log_enabled(level)) return;
  LogOutput& output = LogOutput::get();
  output.write(render_log_line(output.format, system_clock().wall_now(), level, message, fields));
}

LogCapture::LogCapture(LogLevel level) : level_before_(LogOutput::get().level.exchange(level)) {
  LogOutput::get().add(*this);
}

LogCapture::~LogCapture() {
  LogOutput::get().remove(*this);
  LogOutput::get().level = level_before_;
}

std::string LogCapture::text() const { return LogOutput::get().text(*this); }

}  // namespace millrace
