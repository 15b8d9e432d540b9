#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/fuzz_input.h"
#include "platform/http_response_parser.h"

namespace {

using namespace millrace;

struct Outcome : HttpBodySink {
  Status on_head(const HttpResponse& head, const std::uint64_t* length) override {
    fuzz_require(++heads == 1);
    status = head.status;
    if (length != nullptr) declared = *length;
    for (const HttpHeader& header : head.headers.all()) {
      headers.emplace_back(header.name, header.value);
    }
    return {};
  }
  Status on_body(ByteView bytes) override {
    fuzz_require(heads == 1 && !bytes.empty());
    body += as_text(bytes);
    return {};
  }

  int heads = 0;
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::uint64_t> declared;
  std::string body;
  std::size_t consumed = 0;
  bool refused = false;
  bool done = false;
  bool whole = false;  // finish() agrees that this is all.
  bool keep_alive = false;
};

// How an answer is handed over: whole, or in pieces of 1 to `size_max` bytes drawn from the seed;
// and whether what can be received in its place, is.
struct Pieces {
  std::size_t size_max = 0;  // 0: whole.
  std::uint32_t seed = 0;
  bool direct = false;

  std::size_t next(std::size_t left) {
    if (size_max == 0) return left;
    seed = seed * 1664525 + 1013904223;
    return std::min(left, 1 + (seed >> 8) % size_max);
  }
};

void read(std::string_view text, bool head_only, Pieces pieces, Outcome& outcome) {
  HttpResponseParser parser(outcome, head_only);
  while (!text.empty() && !parser.done()) {
    std::size_t size = pieces.next(text.size());
    if (pieces.direct && parser.direct_bytes() > 0) {
      size = std::min<std::uint64_t>(size, parser.direct_bytes());
      outcome.body += text.substr(0, size);
      parser.take_direct(size);
    } else {
      const auto taken = parser.consume(as_bytes(text.substr(0, size)));
      if (!taken) {
        fuzz_require(taken.error() == StatusCode::kUnavailable);
        outcome.refused = true;
        return;
      }
      fuzz_require(*taken == size || (*taken < size && parser.done()));
      size = *taken;
    }
    outcome.consumed += size;
    text.remove_prefix(size);
  }
  fuzz_require(parser.head_done() == (outcome.heads == 1));
  outcome.done = parser.done();
  outcome.whole = parser.finish().ok();
  fuzz_require(outcome.whole == parser.done());
  outcome.keep_alive = parser.keep_alive();
}

void require_same(const Outcome& a, const Outcome& b) {
  fuzz_require(a.refused == b.refused);
  fuzz_require(a.heads == b.heads && a.status == b.status && a.headers == b.headers);
  fuzz_require(a.declared == b.declared && a.body == b.body);
  fuzz_require(a.done == b.done && a.whole == b.whole && a.keep_alive == b.keep_alive);
  fuzz_require(a.refused || a.consumed == b.consumed);
}

}  // namespace

// A byte for the method and the cuts, then an answer. However it is cut, the outcome is the same;
// a declared length is kept.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view text = fuzz_text(data + 1, size - 1);
  const bool head_only = data[0] % 2 == 1;
  const std::uint32_t seed = data[0] / 2;
  Outcome whole;
  read(text, head_only, {}, whole);
  if (whole.done && whole.declared) fuzz_require(whole.body.size() == *whole.declared);
  if (head_only) fuzz_require(whole.body.empty());
  // Byte by byte, in small pieces, and in larger ones that hold several parts.
  for (const std::size_t size_max : {1, 7, 64}) {
    for (const bool direct : {false, true}) {
      Outcome cut;
      read(text, head_only, {size_max, seed, direct}, cut);
      require_same(whole, cut);
    }
  }
  return 0;
}
