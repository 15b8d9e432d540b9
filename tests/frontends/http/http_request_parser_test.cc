#include "frontends/http/http_request_parser.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// What came of a text: each request, or the status of its refusal.
std::vector<std::string> parse_pieces(std::string_view text, std::size_t piece_bytes,
                                      HttpRequestLimits limits = {}) {
  std::vector<std::string> outcomes;
  HttpRequestParser parser(limits);
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, piece_bytes);
    const auto taken = parser.consume(as_bytes(piece));
    if (!taken) {
      outcomes.push_back(std::to_string(taken.error().status));
      return outcomes;
    }
    text.remove_prefix(*taken);
    if (!parser.done()) continue;
    const bool keep_alive = parser.keep_alive();
    const HttpReceived request = parser.take();
    outcomes.push_back(std::string(http_method_name(request.method)) + " " + request.path + " [" +
                       request.query + "] " + request.body + (keep_alive ? "" : " close"));
  }
  if (parser.started()) outcomes.emplace_back("more");
  return outcomes;
}

using Outcomes = std::vector<std::string>;

TEST(HttpRequestParser, FindsTheSameRequestsHoweverTheyAreCut) {
  const std::string text =
      "GET /a?b=c%20d HTTP/1.1\r\nHost: x\r\n\r\n"
      "PUT /b HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n\r\n\r\n"
      "POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
      "A ;name=value\r\n0123456789\r\n1\r\nx\r\n0\r\nTrailer: y\r\n\r\n"
      "DELETE /d HTTP/1.1\r\nhost:\t x \r\nConnection: foo, Close\r\n\r\n"
      "HEAD /e HTTP/1.0\r\n\r\n"
      "GET /half HTTP/1.1\r\nHos";
  const Outcomes expected = {"GET /a [b=c%20d] ",   "PUT /b [] \r\n\r\n", "POST /c [] 0123456789x",
                             "DELETE /d []  close", "HEAD /e []  close",  "more"};
  for (const std::size_t piece_bytes : {std::size_t{1}, std::size_t{2}, std::size_t{3},
                                        std::size_t{17}, std::size_t{64}, text.size()})
    EXPECT_EQ(parse_pieces(text, piece_bytes), expected) << piece_bytes;
}

TEST(HttpRequestParser, HoldsItsLimitsToTheByte) {
  const HttpRequestLimits limits = {.head_bytes_max = 64, .body_bytes_max = 8};
  const std::string head = "PUT /0123456789 HTTP/1.1\r\nHost: x\r\nX: ";
  const std::string fits = head + std::string(64 - head.size() - 4, 'x') + "\r\n\r\n";
  const std::string too_long = head + std::string(64 - head.size() - 3, 'x') + "\r\n\r\n";
  const std::string start = "PUT / HTTP/1.1\r\nHost: x\r\n";
  for (const std::size_t piece_bytes : {1, 1000}) {
    EXPECT_EQ(parse_pieces(fits, piece_bytes, limits), Outcomes{"PUT /0123456789 [] "});
    EXPECT_EQ(parse_pieces(too_long, piece_bytes, limits), Outcomes{"431"});
    EXPECT_EQ(parse_pieces(start + "Content-Length: 8\r\n\r\n01234567", piece_bytes, limits),
              Outcomes{"PUT / [] 01234567"});
    EXPECT_EQ(parse_pieces(start + "Content-Length: 9\r\n\r\n", piece_bytes, limits),
              Outcomes{"413"});
  }
  const HttpRequestLimits small_body = {.body_bytes_max = 8};
  const std::string chunked = start + "Transfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(parse_pieces(chunked + "8\r\n01234567\r\n0\r\n\r\n", 1000, small_body),
            Outcomes{"PUT / [] 01234567"});
  EXPECT_EQ(parse_pieces(chunked + "8\r\n01234567\r\n1\r\n8\r\n0\r\n\r\n", 1000, small_body),
            Outcomes{"413"});
}

TEST(HttpRequestParser, SaysWhenAClientWaitsToSendItsBody) {
  HttpRequestParser parser({});
  const std::string head =
      "PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n";
  ASSERT_TRUE(parser.consume(as_bytes(head)));
  EXPECT_TRUE(parser.awaits_continue());
  ASSERT_TRUE(parser.consume(as_bytes("o")));
  EXPECT_FALSE(parser.awaits_continue());
  ASSERT_TRUE(parser.consume(as_bytes("k")));
  EXPECT_TRUE(parser.done());
}

}  // namespace
}  // namespace millrace
