#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace millrace {

using Sha256Digest = std::array<std::byte, 32>;

Sha256Digest sha256(ByteView bytes);
Sha256Digest hmac_sha256(ByteView key, ByteView message);
// MD5 in base64, the form of Content-MD5. Not for security: some stores check nothing else.
std::string md5_base64(ByteView bytes);

}  // namespace millrace
