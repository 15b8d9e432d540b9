#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace::cli {

// Field order is part of what people see, so documents keep it.
using Json = nlohmann::ordered_json;

// Standard output: buffered, and checked. A full disk or a closed pipe is an error like any other,
// and the first one stays: later writes fail at once.
//
// Lines are flushed one by one on a terminal. Thread-compatible.
class Output {
 public:
  // `fd` is borrowed.
  Output(int fd, bool json);

  // True when documents are wanted instead of lines for people.
  bool json() const { return json_; }
  bool terminal() const { return terminal_; }

  Status write(ByteView bytes);
  // Adds the line break. On a terminal control characters are shown as '?', because names come from
  // others and must not be able to command the terminal.
  Status line(std::string_view text);
  // One JSON document on one line.
  Status document(const Json& document);
  Status flush();

  // The reader closed the pipe: no error to report, nobody is interested any more.
  bool reader_gone() const { return reader_gone_; }

 private:
  const int fd_;
  const bool json_;
  const bool terminal_;
  std::string pending_;
  Status failure_;
  bool reader_gone_ = false;
};

// UTF-8 as it is; bytes that are none become U+FFFD, since JSON cannot hold them.
std::string json_text(const Json& document);

// Control characters as '?'.
std::string printable(std::string_view text);

}  // namespace millrace::cli
