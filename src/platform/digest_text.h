#pragma once

#include <optional>
#include <string_view>

#include "platform/digest.h"

namespace millrace {

// The digest that to_hex() wrote: 64 hexadecimal digits. Nothing for any other text.
std::optional<Sha256Digest> parse_sha256(std::string_view text);

}  // namespace millrace
