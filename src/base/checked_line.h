#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace {

// Lines of text files that we keep: the CRC-32C of the text in 8 hexadecimal digits, a blank, the
// text (without line breaks), a line break.
std::string checked_line(std::string_view text);
// The text of a line, which is given without its line break. Nothing when it is not as it was
// written.
std::optional<std::string_view> checked_text(std::string_view line);

}  // namespace millrace
