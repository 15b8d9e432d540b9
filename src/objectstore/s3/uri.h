#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace millrace::s3 {

// Query parameters, not encoded.
using Query = std::vector<std::pair<std::string, std::string>>;

// Percent-encodes all but A-Z a-z 0-9 - _ . ~, with upper-case digits, as SigV4 wants it.
std::string encode_uri_component(std::string_view text);
// The same, but '/' stays: for object keys in paths.
std::string encode_uri_path(std::string_view path);
// Undoes either. '+' stays a plus. kInvalidArgument for a broken escape.
Result<std::string> decode_uri_component(std::string_view text);

// "a=1&b=" with names sorted, which is both the canonical form and what is sent.
std::string encode_query(Query query);

}  // namespace millrace::s3
