// libcurl with its own SigV4, as a client that shares no code with the servers or with Millrace.
#pragma once

#include <string>
#include <vector>

#include "tests/servers/http_server.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::testing {

struct CurlReply {
  int curl_code = 0;  // CURLE_OK or what went wrong below HTTP.
  int status = 0;
  HttpHeaders headers;
  std::string body;

  // The text of the first element of that name in an XML body, or "".
  std::string element(const std::string& tag) const;
};

struct CurlOptions {
  S3Credentials credentials;
  std::string region = "us-east-1";
  std::string ca_bundle;
  bool sign = true;
};

// One connection, kept alive between requests. Not for concurrent use.
class SigningCurl {
 public:
  explicit SigningCurl(std::string base_url, CurlOptions options = {});
  ~SigningCurl();
  SigningCurl(const SigningCurl&) = delete;
  SigningCurl& operator=(const SigningCurl&) = delete;

  // libcurl 7.88 signs the query as it stands, so write it sorted, escaped, and "uploads=".
  CurlReply send(const std::string& method, const std::string& target,
                 const std::vector<std::string>& headers = {}, const std::string& body = "");

 private:
  const std::string base_url_;
  const CurlOptions options_;
  void* handle_;
};

}  // namespace millrace::testing
