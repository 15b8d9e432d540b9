#include "base/log_line.h"

#include <cmath>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>

#include "base/time_format.h"
#include "base/utf8.h"

namespace millrace {

namespace {

bool is_control(std::string_view sequence) {
  const auto first = static_cast<std::uint8_t>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  // U+0080 to U+009F: some terminals obey them like escape sequences.
  return sequence.size() == 2 && first == 0xc2 && static_cast<std::uint8_t>(sequence[1]) < 0xa0;
}

// The escapes that text and JSON share; nothing for other characters.
std::string_view short_escape(char c) {
  switch (c) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\\':
      return "\\\\";
    default:
      return {};
  }
}

void append_hex_escapes(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<std::uint8_t>(c));
  }
}

void append_text(std::string& out, std::string_view text, bool quoted) {
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    const std::string_view escape = short_escape(text[0]);
    if (quoted && text[0] == '"') {
      out += "\\\"";
    } else if (!escape.empty()) {
      out += escape;
    } else if (length == 0 || is_control(sequence)) {
      append_hex_escapes(out, sequence);
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
}

bool needs_quotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    const auto byte = static_cast<std::uint8_t>(c);
    // All that is not ASCII is quoted as well: no-break spaces and the like count as spaces.
    if (byte <= ' ' || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
  }
  return false;
}

void append_value(std::string& out, std::string_view value) {
  if (!needs_quotes(value)) {
    out += value;
    return;
  }
  out += '"';
  append_text(out, value, true);
  out += '"';
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_length(text);
    const std::string_view sequence = text.substr(0, length == 0 ? 1 : length);
    const std::string_view escape = short_escape(text[0]);
    if (length == 0) {
      out += "\xef\xbf\xbd";  // U+FFFD, the replacement character.
    } else if (text[0] == '"') {
      out += "\\\"";
    } else if (!escape.empty()) {
      out += escape;
    } else if (length == 1 && is_control(sequence)) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<std::uint8_t>(text[0]));
    } else {
      out += sequence;
    }
    text.remove_prefix(sequence.size());
  }
  out += '"';
}

std::string render_text(WallTime time, LogLevel level, std::string_view message,
                        std::initializer_list<LogField> fields) {
  std::string line = fmt::format("{} {} ", format_iso8601(time), log_level_name(level));
  append_text(line, message, false);
  for (const LogField& field : fields) {
    line += ' ';
    append_text(line, field.key, false);
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

std::string render_json(WallTime time, LogLevel level, std::string_view message,
                        std::initializer_list<LogField> fields) {
  std::string line = fmt::format(R"({{"time":"{}","level":"{}","message":)", format_iso8601(time),
                                 log_level_name(level));
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_json_string(line, field.key);
    line += ':';
    if (field.bare) {
      line += field.value;
    } else {
      append_json_string(line, field.value);
    }
  }
  line += '}';
  return line;
}

}  // namespace

LogField::LogField(std::string_view k, double v)
    : key(k), value(fmt::format("{}", v)), bare(std::isfinite(v)) {}  // JSON has no NaN.

std::string_view log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warn";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "unknown";
}

std::string render_log_line(LogFormat format, WallTime time, LogLevel level,
                            std::string_view message, std::initializer_list<LogField> fields) {
  return format == LogFormat::kJson ? render_json(time, level, message, fields)
                                    : render_text(time, level, message, fields);
}

}  // namespace millrace
