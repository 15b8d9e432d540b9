#include "tests/servers/signed_request.h"

#include <array>
#include <memory>
#include <mutex>

#include <curl/curl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "base/ascii.h"

namespace millrace::testing {
namespace {

std::size_t append_body(char* bytes, std::size_t size, std::size_t count, void* to) {
  static_cast<std::string*>(to)->append(bytes, size * count);
  return size * count;
}

std::size_t take_header(char* bytes, std::size_t size, std::size_t count, void* to) {
  const std::string_view line(bytes, size * count);
  auto& headers = *static_cast<std::map<std::string, std::string>*>(to);
  // A redirect or "100 Continue" begins with a status line of its own: only the last head counts.
  if (line.starts_with("HTTP/")) headers.clear();
  if (const auto colon = line.find(':'); colon != std::string_view::npos) {
    const std::string name = lower_case(line.substr(0, colon));
    const auto begin = line.find_first_not_of(" \t", colon + 1);
    const auto end = line.find_last_not_of(" \t\r\n");
    headers[name] = begin > end ? "" : std::string(line.substr(begin, end - begin + 1));
  }
  return size * count;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr);
  std::string hex;
  for (unsigned int i = 0; i < length; ++i)
    hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

SignedAnswer send_signed(const SignedRequest& request) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  const std::unique_ptr<CURL, void (*)(CURL*)> curl(curl_easy_init(), curl_easy_cleanup);
  curl_slist* list = nullptr;
  const auto add = [&](const std::string& line) { list = curl_slist_append(list, line.c_str()); };
  // libcurl 7.88 signs this header's value as the hash, but does not send one by itself.
  add("x-amz-content-sha256: " +
      (request.unsigned_payload ? "UNSIGNED-PAYLOAD" : sha256_hex(request.body)));
  for (const std::string& header : request.headers)
    add(header);
  const std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers(list, curl_slist_free_all);

  SignedAnswer answer;
  std::array<char, CURL_ERROR_SIZE> error{};
  curl_easy_setopt(curl.get(), CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT, request.timeout_seconds);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, error.data());
  curl_easy_setopt(curl.get(), CURLOPT_AWS_SIGV4, "aws:amz:us-east-1:s3");
  const std::string user = request.access_key + ":" + request.secret_key;
  curl_easy_setopt(curl.get(), CURLOPT_USERPWD, user.c_str());
  if (request.method == "PUT" || request.method == "POST") {
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method == "HEAD") curl_easy_setopt(curl.get(), CURLOPT_NOBODY, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CUSTOMREQUEST, request.method.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  if (!request.ca_file.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_CAINFO, request.ca_file.c_str());
  }
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, append_body);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, &answer.headers);
  const CURLcode code = curl_easy_perform(curl.get());
  answer.curl_code = static_cast<int>(code);
  if (code != CURLE_OK) answer.error = error[0] != '\0' ? error.data() : curl_easy_strerror(code);
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &answer.status);
  return answer;
}

}  // namespace millrace::testing
