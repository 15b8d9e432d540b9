// Digests and text encodings of the strict S3 server, independent of the client's.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace millrace::testing {

// Digests are raw bytes.
std::string md5(std::string_view data);
std::string sha1(std::string_view data);
std::string sha256(std::string_view data);
std::string hmac_sha256(std::string_view key, std::string_view data);

// The checksum that S3 calls CRC32, CRC32C, CRC64NVME, SHA1 or SHA256, as raw bytes in the order
// S3 encodes them. Nothing for another name.
std::optional<std::string> s3_checksum(std::string_view algorithm, std::string_view data);

std::string to_hex(std::string_view raw);
std::string to_base64(std::string_view raw);
// Nothing when the text is not canonical base64 with padding.
std::optional<std::string> from_base64(std::string_view text);

// Escapes all but A-Z a-z 0-9 - . _ ~ (and '/' when kept), in upper-case hex, as SigV4 wants it.
std::string uri_encode(std::string_view text, bool keep_slash);

}  // namespace millrace::testing
