#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/buffer.h"
#include "base/completion.h"
#include "base/request_context.h"

namespace millrace {

class BufferPool;

enum class HttpMethod : std::uint8_t { kGet, kHead, kPut, kPost, kDelete };
std::string_view http_method_name(HttpMethod method);

struct HttpHeader {
  std::string name;
  std::string value;
};

// The headers of an answer, in order. Names compare without regard to case.
class HttpHeaders {
 public:
  void add(std::string name, std::string value);
  // The first value of that name, or empty.
  std::string_view get(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<HttpHeader>& all() const { return headers_; }
  std::size_t size() const { return headers_.size(); }

 private:
  std::vector<HttpHeader> headers_;
};

struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  // Absolute and already encoded. It is sent as it stands: nothing normalises "//" or "..".
  std::string url;
  std::vector<HttpHeader> headers;
  Slice body;
  // A longer answer is refused as soon as it is known to be longer: kInternal.
  std::uint64_t response_bytes_max = kMiB;
  // Where the body of a 2xx answer is put. Null: the heap. When the pool is at its ceiling the
  // request fails with kResourceExhausted.
  BufferPool* pool = nullptr;
  // File of certificates to trust for https. Empty: the client's default.
  std::string ca_bundle;
  // The answer may take long to begin without anything being wrong (the store copies, or joins
  // parts): only the deadline limits that.
  bool slow_answer = false;
  // Leave pooled connections alone and open a new one: for retries, since an idle connection may
  // lead to the very host that failed.
  bool fresh_connection = false;
};

struct HttpResponse {
  int status = 0;
  HttpHeaders headers;
  Slice body;
};

// Sends requests and brings back whole answers. Any HTTP status is a success here: what it means is
// the caller's to say. Redirects are not followed, bodies are not decoded.
//
// Failures: kUnavailable (could not connect, reset, cut short, not HTTP, slower than the stall
// limit), kDeadlineExceeded, kCancelled, kResourceExhausted (too many in flight), kInternal (longer
// than allowed), kInvalidArgument (bad URL or header, TLS set-up that cannot work).
//
// A GET or HEAD that meets a kept connection which died meanwhile is sent once more, on a new one.
// No other request is ever sent twice.
//
// Safe from any thread. send() never blocks and never calls the completion inline on the caller's
// stack unless admission fails and the completion is inline.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  // Answers by the context's deadline. The pool, if any, must outlive the answer's slices' request,
  // not the slices.
  virtual void send(const RequestContext& context, HttpRequest request,
                    Completion<HttpResponse> done) = 0;

  // The blocking form. Not to be called on an event loop.
  Result<HttpResponse> perform(const RequestContext& context, HttpRequest request);
};

}  // namespace millrace
