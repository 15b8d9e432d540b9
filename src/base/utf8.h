#pragma once

#include <cstddef>
#include <string_view>

namespace millrace {

// The length of the well-formed UTF-8 sequence (RFC 3629: no surrogates, no overlong forms) at the
// front of `text`, 0 when there is none.
std::size_t utf8_sequence_length(std::string_view text);
// Whether all of it is well-formed.
bool is_utf8(std::string_view text);

}  // namespace millrace
