#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <curl/curl.h>

#include "base/buffer_pool.h"
#include "base/limiter.h"
#include "platform/http_client.h"

namespace millrace {

struct CurlHttpClientOptions;

// One request on its way through libcurl: what is sent, what has come back, and whom to tell.
// Touched by the loop's thread only, but for its construction.
class CurlTransfer {
 public:
  CurlTransfer(const RequestContext& context, HttpRequest request, Completion<HttpResponse> done,
               Limiter::Reservation slot);
  ~CurlTransfer();
  CurlTransfer(const CurlTransfer&) = delete;
  CurlTransfer& operator=(const CurlTransfer&) = delete;

  // Sets what differs from request to request on a handle that has the constant options already.
  // Returns a failure when the request should not be sent at all.
  Status configure(CURL* handle, const CurlHttpClientOptions& options);

  // The answer, from how libcurl says the transfer ended.
  Result<HttpResponse> conclude(CURLcode code);
  // Delivers it. The transfer is spent afterwards.
  void answer(Result<HttpResponse> result);

  std::uint64_t id = 0;
  CURL* easy = nullptr;
  Cancellation::CallbackId cancel_subscription = 0;
  const RequestContext& context() const { return context_; }

  // Options that no request changes.
  static void configure_constants(CURL* easy, const CurlHttpClientOptions& options);

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_upload(char* data, std::size_t size, std::size_t count, void* self);
  static int on_seek(void* self, curl_off_t offset, int origin);

  void configure_method();
  Status begin_body();
  Status take_body(ByteView bytes);
  Status grow_body(std::size_t needed);
  Status failure_of(CURLcode code) const;

  const RequestContext context_;
  HttpRequest request_;
  Completion<HttpResponse> done_;
  Limiter::Reservation slot_;

  curl_slist* header_list_ = nullptr;
  std::size_t uploaded_ = 0;

  HttpResponse response_;
  Buffer body_;
  std::size_t body_size_ = 0;
  bool body_begun_ = false;
  Status refused_;  // Why we told libcurl to stop.
  char error_text_[CURL_ERROR_SIZE] = {};
};

}  // namespace millrace
