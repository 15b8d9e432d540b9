#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "frontends/http/http_request_parser.h"
#include "fuzz/fuzz_input.h"

namespace {

using namespace millrace;

constexpr HttpRequestLimits kLimits = {.head_bytes_max = 2048, .body_bytes_max = 4096};
constexpr std::size_t kRequestsMax = 16;

struct Seen {
  std::string text;  // Of a request, all parts.
  bool keep_alive = false;

  bool operator==(const Seen&) const = default;
};

struct Outcome {
  std::vector<Seen> requests;
  std::size_t consumed = 0;  // By whole requests.
  bool refused = false;
};

Seen seen(HttpRequestParser& parser) {
  Seen result;
  result.keep_alive = parser.keep_alive();
  const int minor_version = parser.minor_version();
  const HttpReceived request = parser.take();
  fuzz_require(!parser.started() && !parser.done());
  fuzz_require(request.path.starts_with('/') && request.body.size() <= kLimits.body_bytes_max);
  const bool has_length = request.headers.has("content-length");
  const bool has_chunks = request.headers.has("transfer-encoding");
  fuzz_require(!(has_length && has_chunks));
  fuzz_require(has_length || has_chunks || request.body.empty());
  if (has_length) {
    fuzz_require(parse_http_number(request.headers.get("content-length")) == request.body.size());
  }
  fuzz_require(minor_version == 0 || request.headers.has("host"));
  result.text = std::string(http_method_name(request.method)) + request.path + "?" + request.query;
  for (const HttpHeader& header : request.headers.all()) {
    fuzz_require(!has_http_line_breaker(header.name) && !has_http_line_breaker(header.value));
    result.text += "\n" + header.name + ":" + header.value;
  }
  result.text += "\n\n" + request.body;
  return result;
}

// Requests one after the other, in pieces of `size_max` bytes at most; 0 is all at once.
Outcome read(std::string_view text, std::size_t size_max) {
  Outcome outcome;
  HttpRequestParser parser(kLimits);
  std::size_t at = 0;
  while (at < text.size() && outcome.requests.size() < kRequestsMax) {
    const std::string_view piece = text.substr(at, size_max == 0 ? std::string::npos : size_max);
    const auto taken = parser.consume(as_bytes(piece));
    if (!taken) {
      fuzz_require(taken.error().status >= 400 && !taken.error().why.ok());
      outcome.refused = true;
      return outcome;
    }
    fuzz_require(*taken == piece.size() || (*taken < piece.size() && parser.done()));
    at += *taken;
    if (!parser.done()) continue;
    outcome.requests.push_back(seen(parser));
    outcome.consumed = at;
  }
  return outcome;
}

}  // namespace

// Requests one after the other. However they are cut, the borders between them are the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz_text(data, size);
  const Outcome whole = read(text, 0);
  for (const std::size_t size_max : {1, 7, 64}) {
    const Outcome cut = read(text, size_max);
    fuzz_require(whole.requests == cut.requests && whole.consumed == cut.consumed);
    fuzz_require(whole.refused == cut.refused);
  }
  return 0;
}
