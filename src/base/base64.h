#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// RFC 4648 section 4: the standard alphabet, padded with '='.
std::string base64_encode(ByteView bytes);
// Accepts exactly what base64_encode() makes: no spaces, padding required, unused bits zero, so
// that one value has one spelling. Anything else is kInvalidArgument.
Result<std::vector<std::byte>> base64_decode(std::string_view text);

}  // namespace millrace
