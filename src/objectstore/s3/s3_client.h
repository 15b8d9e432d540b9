#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "base/thread_pool.h"
#include "objectstore/s3/cached_credentials.h"
#include "objectstore/s3/s3_error.h"
#include "objectstore/s3/s3_options.h"
#include "objectstore/s3/sigv4.h"
#include "objectstore/s3/uri.h"
#include "platform/http_client.h"

namespace millrace::s3 {

// One S3 operation, before it is addressed and signed.
struct S3Request {
  HttpMethod method = HttpMethod::kGet;
  std::string key;  // Empty: the bucket itself.
  Query query;
  std::vector<HttpHeader> headers;
  Slice body;
  std::uint64_t response_bytes_max = kMiB;
  BufferPool* pool = nullptr;
  // The store may work for a while before it answers: copies and completions.
  bool slow_answer = false;
};

// Addresses, signs and sends requests to one bucket, and turns answers that are no success into a
// Status. Cures by itself, once per request, what only it can: a wrong clock (from the server's
// Date), an expired session token, a bucket that lives in another region.
//
// Safe from any thread. Destruction waits for the requests in flight.
class S3Client {
 public:
  S3Client(S3Options options, HttpClient& http, Clock& clock,
           std::shared_ptr<CachedCredentials> credentials);
  ~S3Client();

  // Answers with a 2xx response, or the failure. Never blocks.
  void send(const RequestContext& context, S3Request request, Completion<HttpResponse> done);
  Result<HttpResponse> perform(const RequestContext& context, S3Request request);

  // "s3://bucket/key", for messages.
  std::string url_of(std::string_view key) const;
  const S3Options& options() const { return options_; }
  // "https://host:port" as requests are sent.
  std::string endpoint() const;
  // The store's clock minus ours, as far as answers have shown it.
  Duration clock_skew() const { return Duration(skew_ns_.load(std::memory_order_relaxed)); }

 private:
  struct Call;

  void dispatch(std::unique_ptr<Call> call);
  void send_signed(std::unique_ptr<Call> call, const Credentials* credentials);
  void receive(std::unique_ptr<Call> call, Result<HttpResponse> response);
  bool cure(Call& call, const S3Error& error, const HttpResponse& response);
  std::string host(std::string_view region) const;
  std::string region() const;

  // Constant after construction.
  const S3Options options_;
  HttpClient& http_;
  Clock& clock_;
  const std::shared_ptr<CachedCredentials> credentials_;  // Null: anonymous.
  bool path_style_ = true;
  bool tls_ = false;

  // Synchronise themselves.
  SigV4Signer signer_{"s3"};
  std::atomic<std::int64_t> skew_ns_{0};
  ThreadPool refresher_;  // Where credentials are fetched: that blocks, and send() may not.
  Gate gate_;

  mutable Mutex mutex_;
  std::string region_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace::s3
