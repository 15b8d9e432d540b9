#pragma once

#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace millrace {

// A pattern for paths below a version, as in "train/**/*.jpg". Names are bytes, not letters.
//   *      any bytes of a name, also none
//   ?      one byte of a name
//   [a-z]  one of these bytes; [!a-z] or [^a-z] one of the others
//   **     as a whole name: any number of directories, also none; at the end: all that is below
//   \x     the byte x itself
// A value; safe to read from any thread. Matching takes no memory, and time in proportion to the
// lengths of pattern and path times each other at worst.
class PathGlob {
 public:
  // kInvalidArgument says what is wrong, and where.
  static Result<PathGlob> parse(std::string_view text);

  // `path` as a manifest has it: no '/' at its ends.
  bool matches(std::string_view path) const;
  const std::string& text() const { return text_; }

 private:
  // What one byte of a name may be, or any number of them.
  struct Token {
    bool any_number = false;
    std::bitset<256> bytes = {};
  };
  struct Name {
    bool any_depth = false;
    std::vector<Token> tokens = {};
  };

  explicit PathGlob(std::string_view text) : text_(text) {}
  Result<Name> parse_name(std::string_view name) const;
  // Reads what follows '[' at `at`, and leaves `at` behind the ']'.
  Result<std::bitset<256>> parse_set(std::string_view name, std::size_t& at) const;
  std::unexpected<Status> wrong(std::string_view why) const;
  static bool name_matches(const std::vector<Token>& tokens, std::string_view name);

  std::string text_;
  std::vector<Name> names_;
};

}  // namespace millrace
