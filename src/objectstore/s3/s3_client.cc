#include "objectstore/s3/s3_client.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/time_format.h"

namespace millrace::s3 {
namespace {

constexpr std::string_view kEmptySha256 =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// A store rejects signatures that are 15 minutes off; below this the answer's Date says nothing,
// for it has a resolution of one second and may be late.
constexpr Duration kSkewNoise = std::chrono::seconds(5);

constexpr std::size_t kRefreshesQueuedMax = 10'000;

std::string_view strip_scheme(std::string_view endpoint) {
  const auto scheme = endpoint.find("://");
  return scheme == std::string_view::npos ? endpoint : endpoint.substr(scheme + 3);
}

// The name becomes part of a host name, and it comes from an answer.
bool is_region_name(std::string_view name) {
  constexpr std::size_t kCharactersMax = 40;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !name.empty() && name.size() <= kCharactersMax && std::ranges::all_of(name, allowed);
}

}  // namespace

struct S3Client::Call {
  RequestContext context;
  S3Request request;
  Completion<HttpResponse> done;
  Gate::Pass pass;
  bool cured = false;
  std::string access_key;  // Of the last attempt, to tell the cache which credentials failed.
};

S3Client::S3Client(S3Options options, HttpClient& http, Clock& clock,
                   std::shared_ptr<CachedCredentials> credentials)
    : options_(std::move(options)),
      http_(http),
      clock_(clock),
      credentials_(options_.anonymous ? nullptr : std::move(credentials)),
      refresher_({.name = "s3-credentials", .threads = 1, .queued_tasks_max = kRefreshesQueuedMax}),
      region_(options_.region) {
  tls_ = options_.endpoint.empty() || options_.endpoint.starts_with("https://");
  switch (options_.addressing) {
    case Addressing::kPath:
      path_style_ = true;
      break;
    case Addressing::kVirtualHost:
      path_style_ = false;
      break;
    case Addressing::kAuto:
      // A dot in the bucket's name would not match AWS's wildcard certificate.
      path_style_ = !options_.endpoint.empty() || options_.bucket.contains('.');
      break;
  }
}

S3Client::~S3Client() { gate_.close(); }

std::string S3Client::region() const {
  MutexLock lock(mutex_);
  return region_;
}

std::string S3Client::host(std::string_view region) const {
  std::string base;
  if (!options_.endpoint.empty()) {
    base = strip_scheme(options_.endpoint);
  } else {
    base = fmt::format("s3.{}.amazonaws.com{}", region, region.starts_with("cn-") ? ".cn" : "");
  }
  return path_style_ ? base : options_.bucket + "." + base;
}

std::string S3Client::endpoint() const { return (tls_ ? "https://" : "http://") + host(region()); }

std::string S3Client::url_of(std::string_view key) const {
  return fmt::format("s3://{}{}{}", options_.bucket, key.empty() ? "" : "/", key);
}

Result<HttpResponse> S3Client::perform(const RequestContext& context, S3Request request) {
  Waiter<HttpResponse> waiter;
  send(context, std::move(request), waiter.completion());
  return waiter.wait();
}

void S3Client::send(const RequestContext& context, S3Request request,
                    Completion<HttpResponse> done) {
  std::optional<Gate::Pass> pass = gate_.enter();
  if (!pass) {
    done.complete(failure(StatusCode::kCancelled, "the store is being closed"));
    return;
  }
  dispatch(std::make_unique<Call>(
      Call{context, std::move(request), std::move(done), std::move(*pass), false, {}}));
}

void S3Client::dispatch(std::unique_ptr<Call> call) {
  if (credentials_ == nullptr) {
    send_signed(std::move(call), nullptr);
    return;
  }
  if (const auto fresh = credentials_->get_if_fresh()) {
    send_signed(std::move(call), fresh.get());
    return;
  }
  refresher_.resume([this, call = std::move(call)]() mutable {
    Result<std::shared_ptr<const Credentials>> credentials = credentials_->get(call->context);
    if (!credentials) {
      auto done = std::move(call->done);
      call.reset();
      done.complete(failure(std::move(credentials).error()));
      return;
    }
    send_signed(std::move(call), credentials->get());
  });
}

void S3Client::send_signed(std::unique_ptr<Call> call, const Credentials* credentials) {
  const S3Request& request = call->request;
  const std::string region = this->region();
  const std::string host = this->host(region);
  std::string path = path_style_ ? "/" + encode_uri_path(options_.bucket) : "";
  if (!request.key.empty() || !path_style_) path += "/" + encode_uri_path(request.key);
  const std::string query = encode_query(request.query);

  HttpRequest http;
  http.method = request.method;
  http.url = fmt::format("{}://{}{}{}{}", tls_ ? "https" : "http", host, path,
                         query.empty() ? "" : "?", query);
  http.headers = request.headers;
  http.body = request.body;
  http.response_bytes_max = request.response_bytes_max;
  http.pool = request.pool;
  http.ca_bundle = options_.ca_bundle;
  // The connection that a failed attempt used may lead to a sick host; so may its pooled sisters.
  http.fresh_connection = call->context.attempt() > 0;
  http.slow_answer = request.slow_answer;
  if (credentials != nullptr) {
    call->access_key = credentials->access_key;
    std::string payload(kEmptySha256);
    if (!request.body.empty()) {
      // Over TLS the transport protects the body; in the clear the signature must.
      payload = tls_ ? std::string(kUnsignedPayload) : to_hex(sha256(request.body.bytes()));
    }
    signer_.sign(*credentials, region, clock_.wall_now() + clock_skew(),
                 {request.method, host, path, query, payload}, http.headers);
  }
  const RequestContext context = call->context;
  http_.send(
      context, std::move(http),
      Completion<HttpResponse>(
          inline_executor(), [this, call = std::move(call)](Result<HttpResponse> response) mutable {
            receive(std::move(call), std::move(response));
          }));
}

void S3Client::receive(std::unique_ptr<Call> call, Result<HttpResponse> response) {
  // The pass goes before the answer: whoever is told may destroy this client.
  const auto answer = [&call](Result<HttpResponse> result) {
    auto done = std::move(call->done);
    call.reset();
    done.complete(std::move(result));
  };
  const std::string what =
      fmt::format("{} {}", http_method_name(call->request.method), url_of(call->request.key));
  if (!response) return answer(failure(response.error().with_context(what)));
  // S3 may send its 200 first and fail afterwards: then the body says so. Only objects' own bytes
  // are not looked at.
  const bool is_data = call->request.method == HttpMethod::kGet && !call->request.key.empty();
  const bool good = response->status >= 200 && response->status < 300;
  if (good && (is_data || response->body.empty())) return answer(std::move(response));
  S3Error error = read_error(*response);
  if (good && error.document.code.empty()) return answer(std::move(response));
  if (good) error.http_status = 500;
  if (!call->cured && cure(*call, error, *response)) {
    call->cured = true;
    return dispatch(std::move(call));
  }
  answer(failure(status_of(error, *response, what)));
}

bool S3Client::cure(Call& call, const S3Error& error, const HttpResponse& response) {
  // HEAD answers have no body to name the reason. Trying once more with what their headers say
  // costs little, and is what a GET would have done.
  const std::string& code = error.document.code;
  const bool nameless = code.empty() && (error.http_status == 400 || error.http_status == 403);
  const auto server_time = parse_http_date(response.headers.get("date"));
  if ((code == "RequestTimeTooSkewed" || nameless) && server_time) {
    const Duration skew = *server_time - clock_.wall_now();
    if (std::chrono::abs(skew - clock_skew()) > kSkewNoise) {
      log_warn("the store's clock differs from this machine's; signing with the store's",
               {{"store", url_of("")},
                {"skew_s", std::chrono::duration_cast<std::chrono::seconds>(skew).count()}});
      skew_ns_.store(skew.count(), std::memory_order_relaxed);
      return true;
    }
  }
  if ((code == "ExpiredToken" || code == "InvalidToken") && credentials_ != nullptr) {
    credentials_->invalidate(call.access_key);
    return true;
  }
  std::string region(response.headers.get("x-amz-bucket-region"));
  if (region.empty() && code == "AuthorizationHeaderMalformed") region = error.document.region;
  if (!is_region_name(region) || region == this->region()) return false;
  log_info("the bucket is in another region", {{"store", url_of("")}, {"region", region}});
  MutexLock lock(mutex_);
  region_ = std::move(region);
  return true;
}

}  // namespace millrace::s3
