#include "tests/servers_test/signing_curl.h"

#include <algorithm>
#include <cstring>

#include <curl/curl.h>

namespace millrace::testing {
namespace {

size_t append_body(char* data, size_t, size_t size, void* reply) {
  static_cast<CurlReply*>(reply)->body.append(data, size);
  return size;
}

size_t append_header(char* data, size_t, size_t size, void* reply) {
  const std::string line(data, size);
  const size_t colon = line.find(": ");
  if (colon != std::string::npos) {
    static_cast<CurlReply*>(reply)->headers.add(line.substr(0, colon),
                                                line.substr(colon + 2, size - colon - 4));
  }
  return size;
}

struct Upload {
  const std::string& body;
  size_t position = 0;
};

size_t read_upload(char* data, size_t, size_t size, void* context) {
  auto* upload = static_cast<Upload*>(context);
  const size_t count = std::min(size, upload->body.size() - upload->position);
  std::memcpy(data, upload->body.data() + upload->position, count);
  upload->position += count;
  return count;
}

}  // namespace

std::string CurlReply::element(const std::string& tag) const {
  const size_t begin = body.find("<" + tag + ">");
  const size_t end = body.find("</" + tag + ">");
  if (begin == std::string::npos || end == std::string::npos) return "";
  return body.substr(begin + tag.size() + 2, end - begin - tag.size() - 2);
}

SigningCurl::SigningCurl(std::string base_url, CurlOptions options)
    : base_url_(std::move(base_url)), options_(std::move(options)), handle_(curl_easy_init()) {}

SigningCurl::~SigningCurl() { curl_easy_cleanup(handle_); }

CurlReply SigningCurl::send(const std::string& method, const std::string& target,
                            const std::vector<std::string>& headers, const std::string& body) {
  CURL* curl = handle_;
  curl_easy_reset(curl);
  CurlReply reply;
  Upload upload{body};
  curl_slist* list = nullptr;
  bool hashed = false;
  for (const std::string& header : headers) {
    list = curl_slist_append(list, header.c_str());
    hashed = hashed || header.starts_with("x-amz-content-sha256");
  }
  if (!hashed && options_.sign) {
    list = curl_slist_append(list, "x-amz-content-sha256: UNSIGNED-PAYLOAD");
  }
  const std::string token = options_.credentials.session_token;
  if (!token.empty()) list = curl_slist_append(list, ("x-amz-security-token: " + token).c_str());
  curl_easy_setopt(curl, CURLOPT_URL, (base_url_ + target).c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, list);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, 30L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &reply);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, append_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &reply);
  if (method == "HEAD") curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (method == "PUT" || method == "POST") {
    curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.size()));
    curl_easy_setopt(curl, CURLOPT_READFUNCTION, read_upload);
    curl_easy_setopt(curl, CURLOPT_READDATA, &upload);
  }
  if (method != "HEAD") curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method.c_str());
  if (!options_.ca_bundle.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, options_.ca_bundle.c_str());
  }
  if (options_.sign) {
    const std::string scope = "aws:amz:" + options_.region + ":s3";
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, scope.c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, options_.credentials.access_key.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, options_.credentials.secret_key.c_str());
  }
  reply.curl_code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  reply.status = static_cast<int>(status);
  curl_slist_free_all(list);
  return reply;
}

}  // namespace millrace::testing
