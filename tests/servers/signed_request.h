#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::testing {

// A client that shares no code with ours: libcurl's own SigV4, so that the tests of the servers and
// of the S3 back end do not agree with each other by a common mistake.
struct SignedRequest {
  std::string method = "GET";
  std::string
      url;  // Query parameters sorted, each with '=' ("?uploads="): libcurl 7.88 signs as is.
  std::string body{};
  std::vector<std::string> headers{};  // "Name: value"
  std::string access_key = "millrace";
  std::string secret_key = "millrace-secret";
  bool unsigned_payload = false;  // The server then cannot tell that the body changed.
  std::string ca_file{};          // For https.
  long timeout_seconds = 120;     // Long, since a sanitizer or a full machine slows Ceph a lot.
};

struct SignedAnswer {
  int curl_code = 0;  // CURLE_OK is 0; else `error` says what happened.
  std::string error;
  long status = 0;                             // 0 when no status line came.
  std::map<std::string, std::string> headers;  // Names in lower case.
  std::string body;                            // What came, also when curl_code is not 0.
};

// One request on a new connection. Never throws; failures are in the answer.
SignedAnswer send_signed(const SignedRequest& request);

// Lower-case hex.
std::string sha256_hex(std::string_view bytes);

}  // namespace millrace::testing
