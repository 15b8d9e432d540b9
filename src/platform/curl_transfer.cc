#include "platform/curl_transfer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <fmt/format.h>

#include "base/units.h"
#include "platform/curl_http_client.h"

namespace millrace {
namespace {

// Large enough that one read takes what a fast link queued since the last, small enough to stay in
// the second-level cache until it is copied out.
constexpr long kReceiveBufferBytes = 256 * 1024;
constexpr long kSendBufferBytes = 256 * 1024;

// Error bodies are read for their text, wherever the caller wants the data.
constexpr std::uint64_t kErrorBodyBytesMax = 64 * kKiB;
// More header lines than any store sends; a flood of them is not an answer.
constexpr std::size_t kHeaderLinesMax = 256;
// First guess for a body of unknown length.
constexpr std::size_t kUnknownBodyBytes = 16 * kKiB;

std::string_view trim(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front()))
    text.remove_prefix(1);
  while (!text.empty() && blank(text.back()))
    text.remove_suffix(1);
  return text;
}

// Host and port of a URL, for messages. Never the query: it may carry a signature.
std::string_view host_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

}  // namespace

CurlTransfer::CurlTransfer(const RequestContext& context, HttpRequest request,
                           Completion<HttpResponse> done, Limiter::Reservation slot)
    : context_(context),
      request_(std::move(request)),
      done_(std::move(done)),
      slot_(std::move(slot)) {}

CurlTransfer::~CurlTransfer() { curl_slist_free_all(header_list_); }

void CurlTransfer::configure_constants(CURL* easy, const CurlHttpClientOptions& options) {
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
  curl_easy_setopt(easy, CURLOPT_UPLOAD_BUFFERSIZE, kSendBufferBytes);
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
  curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_upload);
  curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, on_seek);
  curl_easy_setopt(easy, CURLOPT_USERAGENT, options.user_agent.c_str());
  curl_easy_setopt(easy, CURLOPT_NOPROXY, options.no_proxy.c_str());
  curl_easy_setopt(
      easy, CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(
          std::chrono::ceil<std::chrono::milliseconds>(options.connect_timeout).count()));
  if (options.stall_bytes_per_second > 0) {
    curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT,
                     static_cast<long>(options.stall_bytes_per_second));
    curl_easy_setopt(
        easy, CURLOPT_LOW_SPEED_TIME,
        static_cast<long>(std::chrono::ceil<std::chrono::seconds>(options.stall_window).count()));
  }
}

Status CurlTransfer::configure(CURL* handle, const CurlHttpClientOptions& options) {
  easy = handle;
  if (context_.has_deadline()) {
    const Duration left = context_.deadline() - system_clock().now();
    if (left <= Duration::zero()) {
      return {StatusCode::kDeadlineExceeded, "the deadline passed before the request was sent"};
    }
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS,
                     static_cast<long>(std::min<std::int64_t>(ms, std::int64_t{1000} * 86400)));
  } else {
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, 0L);
  }
  curl_easy_setopt(easy, CURLOPT_URL, request_.url.c_str());
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy, CURLOPT_READDATA, this);
  curl_easy_setopt(easy, CURLOPT_SEEKDATA, this);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error_text_);
  curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, request_.fresh_connection ? 1L : 0L);
  if (request_.url.starts_with("https:")) {
    const std::string& trusted =
        request_.ca_bundle.empty() ? options.ca_bundle : request_.ca_bundle;
    curl_easy_setopt(easy, CURLOPT_CAINFO, trusted.c_str());
  }
  for (const HttpHeader& header : request_.headers) {
    // A header without a value is written "name;" by libcurl's convention.
    const std::string line =
        header.value.empty() ? header.name + ";" : header.name + ": " + header.value;
    header_list_ = curl_slist_append(header_list_, line.c_str());
  }
  configure_method();
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, header_list_);
  return {};
}

void CurlTransfer::configure_method() {
  // Handles are reused, and curl's method options leave traces on each other: every one is set.
  switch (request_.method) {
    case HttpMethod::kGet:
    case HttpMethod::kHead:
    case HttpMethod::kDelete:
      curl_easy_setopt(easy, CURLOPT_UPLOAD, 0L);
      curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
      curl_easy_setopt(easy, CURLOPT_NOBODY, request_.method == HttpMethod::kHead ? 1L : 0L);
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                       request_.method == HttpMethod::kDelete ? "DELETE" : nullptr);
      return;
    case HttpMethod::kPut:
    case HttpMethod::kPost:
      curl_easy_setopt(easy, CURLOPT_NOBODY, 0L);
      curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L);
      curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST,
                       request_.method == HttpMethod::kPost ? "POST" : nullptr);
      curl_easy_setopt(easy, CURLOPT_INFILESIZE_LARGE,
                       static_cast<curl_off_t>(request_.body.size()));
      // Waiting for "100 Continue" costs a round trip, or a second with servers that never send it.
      header_list_ = curl_slist_append(header_list_, "Expect:");
      return;
  }
}

std::size_t CurlTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const std::size_t bytes = size * count;
  const std::string_view line = trim({data, bytes});
  HttpResponse& response = transfer.response_;
  if (line.starts_with("HTTP/")) {
    // A new status line: what came before was an interim answer (1xx).
    response = {};
    const auto space = line.find(' ');
    if (space != std::string_view::npos) {
      const char* digits = line.data() + space + 1;
      std::from_chars(digits, line.data() + line.size(), response.status);
    }
    return bytes;
  }
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return bytes;
  if (response.headers.size() >= kHeaderLinesMax) {
    transfer.refused_ =
        Status(StatusCode::kInternal, fmt::format("{} sent more than {} header lines",
                                                  host_of(transfer.request_.url), kHeaderLinesMax));
    return 0;
  }
  response.headers.add(std::string(line.substr(0, colon)),
                       std::string(trim(line.substr(colon + 1))));
  return bytes;
}

std::size_t CurlTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const std::size_t bytes = size * count;
  transfer.refused_ = transfer.take_body(as_bytes(std::string_view(data, bytes)));
  return transfer.refused_.ok() ? bytes : CURL_WRITEFUNC_ERROR;
}

Status CurlTransfer::begin_body() {
  body_begun_ = true;
  const bool good = response_.status >= 200 && response_.status < 300;
  const std::uint64_t limit = good ? request_.response_bytes_max : kErrorBodyBytesMax;
  curl_off_t declared = -1;
  curl_easy_getinfo(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &declared);
  if (declared >= 0 && static_cast<std::uint64_t>(declared) > limit) {
    return {StatusCode::kInternal,
            fmt::format("{} answered {} with {}, more than the {} that fit the request",
                        host_of(request_.url), response_.status,
                        format_size(static_cast<std::uint64_t>(declared)), format_size(limit))};
  }
  const std::size_t capacity =
      declared >= 0 ? static_cast<std::size_t>(declared)
                    : static_cast<std::size_t>(std::min<std::uint64_t>(kUnknownBodyBytes, limit));
  if (request_.pool == nullptr || !good) {
    body_ = Buffer::allocate(capacity);
    return {};
  }
  MR_ASSIGN_OR_RETURN(body_, request_.pool->try_allocate(capacity));
  return {};
}

Status CurlTransfer::grow_body(std::size_t needed) {
  const bool good = response_.status >= 200 && response_.status < 300;
  const std::uint64_t limit = good ? request_.response_bytes_max : kErrorBodyBytesMax;
  if (needed > limit) {
    return {StatusCode::kInternal, fmt::format("{} sent more than the {} that fit the request",
                                               host_of(request_.url), format_size(limit))};
  }
  const std::size_t capacity = std::min<std::uint64_t>(limit, std::max(needed, 2 * body_.size()));
  Buffer larger;
  if (request_.pool != nullptr && good) {
    MR_ASSIGN_OR_RETURN(larger, request_.pool->try_allocate(capacity));
  } else {
    larger = Buffer::allocate(capacity);
  }
  std::memcpy(larger.data(), body_.data(), body_size_);
  body_ = std::move(larger);
  return {};
}

Status CurlTransfer::take_body(ByteView bytes) {
  if (!body_begun_) MR_RETURN_IF_ERROR(begin_body());
  if (bytes.size() > body_.size() - body_size_) {
    MR_RETURN_IF_ERROR(grow_body(body_size_ + bytes.size()));
  }
  std::memcpy(body_.data() + body_size_, bytes.data(), bytes.size());
  body_size_ += bytes.size();
  return {};
}

std::size_t CurlTransfer::on_upload(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  const Slice& body = transfer.request_.body;
  const std::size_t bytes = std::min(size * count, body.size() - transfer.uploaded_);
  if (bytes > 0) std::memcpy(data, body.data() + transfer.uploaded_, bytes);
  transfer.uploaded_ += bytes;
  return bytes;
}

int CurlTransfer::on_seek(void* self, curl_off_t offset, int origin) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (origin != SEEK_SET || offset < 0 ||
      static_cast<std::uint64_t>(offset) > transfer.request_.body.size()) {
    return CURL_SEEKFUNC_FAIL;
  }
  transfer.uploaded_ = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

Result<HttpResponse> CurlTransfer::conclude(CURLcode code) {
  if (!refused_.ok()) return failure(std::move(refused_));
  if (code != CURLE_OK) return failure(failure_of(code));
  body_.truncate(body_size_);
  response_.body = std::move(body_).freeze();
  return std::move(response_);
}

void CurlTransfer::answer(Result<HttpResponse> result) {
  // The slot is free before the caller knows, so that it can send the next request at once.
  slot_ = {};
  done_.complete(std::move(result));
}

Status CurlTransfer::failure_of(CURLcode code) const {
  const std::string_view detail = error_text_[0] != 0 ? error_text_ : curl_easy_strerror(code);
  const std::string_view host = host_of(request_.url);
  const std::string_view method = http_method_name(request_.method);
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      if (context_.has_deadline() && system_clock().now() >= context_.deadline()) {
        return {
            StatusCode::kDeadlineExceeded,
            fmt::format("{} at {} did not finish before the deadline ({})", method, host, detail)};
      }
      return {StatusCode::kUnavailable, fmt::format("{} at {}: {}", method, host, detail)};
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
      return {StatusCode::kUnavailable, fmt::format("cannot connect to {}: {}", host, detail)};
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
      return {StatusCode::kInvalidArgument,
              fmt::format("cannot trust the certificate of {}: {}; give the CA's certificate with "
                          "the ca_bundle parameter or AWS_CA_BUNDLE",
                          host, detail)};
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Also libcurl's word for an answer that is not HTTP: garbage on the connection.
      if (request_.url.starts_with("http")) {
        return {StatusCode::kUnavailable, fmt::format("{} at {}: {}", method, host, detail)};
      }
      [[fallthrough]];
    case CURLE_URL_MALFORMAT:
      return {StatusCode::kInvalidArgument, fmt::format("bad address '{}': {}", host, detail)};
    case CURLE_OUT_OF_MEMORY:
      return {StatusCode::kResourceExhausted, fmt::format("{} at {}: {}", method, host, detail)};
    default:
      return {StatusCode::kUnavailable, fmt::format("{} at {}: {}", method, host, detail)};
  }
}

}  // namespace millrace
