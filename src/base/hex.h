#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Two lower-case digits a byte.
std::string to_hex(ByteView bytes);
// Digits of either case; kInvalidArgument for anything else, or an odd number of them.
Result<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace millrace
