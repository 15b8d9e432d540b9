#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "frontends/http/http_status.h"
#include "platform/http_client.h"

namespace millrace {

// A request as it was sent, whole.
struct HttpReceived {
  HttpMethod method = HttpMethod::kGet;
  std::string path;   // From the first '/', still percent-encoded.
  std::string query;  // What follows the '?', still encoded.
  HttpHeaders headers;
  std::string body;
};

// A body that is made while it is sent.
class HttpBodyStream {
 public:
  virtual ~HttpBodyStream() = default;

  // How long it will be, so that the client learns it first; nothing when that is not known.
  virtual std::optional<std::uint64_t> length() const = 0;
  // The next piece; an empty one is the end. Asked for when the one before was sent, so that a slow
  // client holds up the source and not the memory. Must not block. A failure, or another length
  // than was said, cuts the connection, since there is no other way left to tell the client. The
  // completion may be answered from any thread.
  virtual void next(const RequestContext& context, Completion<Slice> done) = 0;
};

// A body that is part of a file, and goes from there to the socket inside the kernel. The file
// holds the range, and is best in the page cache: the loop waits for the disk otherwise.
struct HttpFileBody {
  int descriptor = -1;
  ByteRange range;
  std::shared_ptr<const void> owner;  // Keeps the descriptor open.
};

using HttpBody = std::variant<Slice, HttpFileBody, std::shared_ptr<HttpBodyStream>>;

struct HttpAnswer {
  int status = 200;
  // Without those that frame the message: length, encoding, connection, date.
  std::vector<HttpHeader> headers;
  HttpBody body = Slice();
};

HttpAnswer text_answer(int status, std::string content_type, std::string text);
// What a client of a JSON interface gets for a failure.
HttpAnswer json_error_answer(const HttpRefusal& refusal);

// A request that waits for its answer. The context has the client as principal ("uid:1000") and no
// deadline; it is cancelled when the client goes away, or when the server stops waiting.
struct HttpCall {
  HttpReceived request;
  RequestContext context;
};

// Who answers. handle() runs on the server's `work` executor, for several calls at once: it may
// block, or return and have the answer given later, from any thread. A failure becomes an answer by
// the server's error page. To a HEAD it answers as to a GET; the body is not sent.
class HttpHandler {
 public:
  virtual ~HttpHandler() = default;
  virtual void handle(HttpCall call, Completion<HttpAnswer> done) = 0;
};

}  // namespace millrace
