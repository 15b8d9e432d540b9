#pragma once

#include <string_view>

#include "objectstore/s3/credentials.h"

namespace millrace::s3 {

// The JSON that carries credentials differs in small ways between those who send it.
enum class CredentialJson {
  kProcess,  // credential_process: "Version": 1, "SessionToken".
  kService,  // Container endpoint and IMDS: "Token", and IMDS adds "Code".
};

// Reads one JSON object. kInternal names the field that is missing or wrong, never a value;
// kUnauthenticated when the sender reports a failure in "Code". `source` goes into the result and,
// as the culprit, into messages.
Result<Credentials> parse_credentials_json(std::string_view text, CredentialJson kind,
                                           std::string_view source);

}  // namespace millrace::s3
