#include "platform/http_response_parser.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

using std::string_literals::operator""s;

constexpr std::size_t kHeadBytesMax = 64 * 1024;

// Remembers everything, and fails where it is told to.
class RecordingSink : public HttpBodySink {
 public:
  Status on_head(const HttpResponse& head, const std::uint64_t* length) override {
    ++heads;
    status = head.status;
    if (length != nullptr) declared = *length;
    return head_failure;
  }
  Status on_body(ByteView bytes) override {
    EXPECT_EQ(heads, 1) << "a body before its head";
    EXPECT_FALSE(bytes.empty());
    body += as_text(bytes);
    return body_failure;
  }

  int heads = 0;
  int status = 0;
  std::optional<std::uint64_t> declared;
  std::string body;
  Status head_failure;
  Status body_failure;
};

// What came of an answer.
struct Outcome {
  StatusCode code = StatusCode::kOk;  // Of consume().
  StatusCode finish_code = StatusCode::kOk;
  int heads = 0;
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::uint64_t> declared;
  std::string body;
  std::size_t consumed = 0;  // 0 when refused: how far a refusal reads depends on the pieces.
  bool head_done = false;
  bool done = false;  // Before finish().
  bool keep_alive = false;

  bool operator==(const Outcome&) const = default;
};

// Feeds the input in pieces that end at the cuts. finish() is asked last.
Outcome read_in_pieces(std::string_view input, bool head_only, std::vector<std::size_t> cuts) {
  RecordingSink sink;
  HttpResponseParser parser(sink, head_only);
  Outcome outcome;
  cuts.push_back(input.size());
  std::size_t begin = 0;
  for (const std::size_t cut : cuts) {
    const auto taken = parser.consume(as_bytes(input.substr(begin, cut - begin)));
    if (!taken) {
      outcome.code = taken.error().code();
      outcome.consumed = 0;
      EXPECT_FALSE(taken.error().message().empty());
      break;
    }
    EXPECT_LE(*taken, cut - begin);
    outcome.consumed += *taken;
    if (*taken < cut - begin) {
      EXPECT_TRUE(parser.done()) << "bytes are left over only behind the end";
    }
    begin = cut;
  }
  outcome.done = parser.done();
  outcome.head_done = parser.head_done();
  if (outcome.code == StatusCode::kOk) {
    outcome.finish_code = parser.finish().code();
    outcome.keep_alive = parser.keep_alive();
    for (const HttpHeader& header : parser.response().headers.all()) {
      outcome.headers.emplace_back(header.name, header.value);
    }
  }
  outcome.heads = sink.heads;
  outcome.status = sink.status;
  outcome.declared = sink.declared;
  outcome.body = sink.body;
  return outcome;
}

std::vector<std::size_t> every_position(std::string_view input) {
  std::vector<std::size_t> cuts;
  for (std::size_t at = 1; at < input.size(); ++at) {
    cuts.push_back(at);
  }
  return cuts;
}

// Every test reads this way: whole, in two at every position, and byte by byte, all alike.
Outcome read(std::string_view input, bool head_only = false) {
  const Outcome whole = read_in_pieces(input, head_only, {});
  for (std::size_t cut = 0; cut <= input.size(); ++cut) {
    EXPECT_EQ(read_in_pieces(input, head_only, {cut}), whole) << "cut at " << cut;
  }
  EXPECT_EQ(read_in_pieces(input, head_only, every_position(input)), whole) << "byte by byte";
  return whole;
}

// The same for inputs too long to be cut everywhere: around the limit of the head.
Outcome read_long(std::string_view input) {
  const Outcome whole = read_in_pieces(input, false, {});
  for (std::size_t cut = kHeadBytesMax - 8; cut <= std::min(input.size(), kHeadBytesMax + 8);
       ++cut) {
    EXPECT_EQ(read_in_pieces(input, false, {cut}), whole) << "cut at " << cut;
  }
  EXPECT_EQ(read_in_pieces(input, false, every_position(input)), whole) << "byte by byte";
  return whole;
}

void expect_whole(const Outcome& outcome, int status, std::string_view body) {
  EXPECT_EQ(outcome.code, StatusCode::kOk);
  EXPECT_EQ(outcome.finish_code, StatusCode::kOk);
  EXPECT_EQ(outcome.heads, 1);
  EXPECT_EQ(outcome.status, status);
  EXPECT_EQ(outcome.body, body);
  EXPECT_TRUE(outcome.head_done);
}

// Refused by consume(), without waiting for the connection's end, and before the sink sees a head.
void expect_head_refused(std::string_view input) {
  SCOPED_TRACE(::testing::PrintToString(std::string(input.substr(0, 200))));
  const Outcome outcome = read(input);
  EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
  EXPECT_EQ(outcome.heads, 0);
  EXPECT_FALSE(outcome.done);
  EXPECT_FALSE(outcome.head_done);
}

std::string with_header(std::string_view header) {
  return fmt::format("HTTP/1.1 200 OK\r\n{}\r\n\r\n", header);
}

const std::string kChunkedHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

// ---- Bodies

TEST(HttpResponseParser, ReadsABodyOfDeclaredLength) {
  const std::string input = "HTTP/1.1 206 Partial Content\r\nContent-Length: 5\r\n\r\nhello";
  const Outcome outcome = read(input);
  expect_whole(outcome, 206, "hello");
  EXPECT_TRUE(outcome.done);
  EXPECT_TRUE(outcome.keep_alive);
  EXPECT_EQ(outcome.declared, 5u);
  EXPECT_EQ(outcome.consumed, input.size());
}

TEST(HttpResponseParser, ReadsHeadersInOrderAndTrimmed) {
  const Outcome outcome = read(
      "HTTP/1.1 200\r\nETag:\"e\"\r\nX-Empty:\r\nX-Two: \t a: b \t\r\nx-two: c\r\n"
      "Content-Length: 0\r\n\r\n");
  expect_whole(outcome, 200, "");
  const std::vector<std::pair<std::string, std::string>> expected = {{"ETag", "\"e\""},
                                                                     {"X-Empty", ""},
                                                                     {"X-Two", "a: b"},
                                                                     {"x-two", "c"},
                                                                     {"Content-Length", "0"}};
  EXPECT_EQ(outcome.headers, expected);
}

TEST(HttpResponseParser, ABodyMayHoldAnyBytes) {
  const std::string body = "\r\n\r\n\0\xff\nHTTP/1.1 200 OK\r\n\r\n"s;
  const Outcome outcome = read(with_header(fmt::format("content-length: {}", body.size())) + body);
  expect_whole(outcome, 200, body);
}

TEST(HttpResponseParser, AnEmptyBodyIsDoneWithTheHead) {
  const Outcome outcome = read(with_header("Content-Length: 0"));
  expect_whole(outcome, 200, "");
  EXPECT_TRUE(outcome.done);
  EXPECT_EQ(outcome.declared, 0u);
}

TEST(HttpResponseParser, TheSameLengthTwiceIsOneLength) {
  expect_whole(read(with_header("Content-Length: 2\r\nContent-Length: 2") + "ab"), 200, "ab");
}

TEST(HttpResponseParser, ReadsChunks) {
  const std::string input = kChunkedHead + "5\r\nhello\r\n1;name=\"v\"\r\n,\r\n00A \r\n" +
                            "0123456789\r\nb\r\n\r\n\r\n0\r\n\r\n56\r\n0\r\n\r\n";
  const Outcome outcome = read(input);
  expect_whole(outcome, 200, "hello,0123456789\r\n\r\n0\r\n\r\n56");
  EXPECT_TRUE(outcome.done);
  EXPECT_TRUE(outcome.keep_alive);
  EXPECT_EQ(outcome.declared, std::nullopt);
  EXPECT_EQ(outcome.consumed, input.size());
}

TEST(HttpResponseParser, PassesOverTrailers) {
  const std::string input =
      kChunkedHead + "2\r\nab\r\n0;last\r\nx-amz-checksum-crc32c: AAAA\r\nB: \r\n\r\n";
  const Outcome outcome = read(input);
  expect_whole(outcome, 200, "ab");
  EXPECT_TRUE(outcome.done);
  EXPECT_EQ(outcome.headers.size(), 1u);
  EXPECT_EQ(outcome.consumed, input.size());
}

TEST(HttpResponseParser, WithoutALengthTheBodyEndsWithTheConnection) {
  const Outcome outcome = read("HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nab\r\n\r\ncd");
  expect_whole(outcome, 200, "ab\r\n\r\ncd");
  EXPECT_FALSE(outcome.done);
  EXPECT_FALSE(outcome.keep_alive);
  EXPECT_EQ(outcome.declared, std::nullopt);
}

TEST(HttpResponseParser, AnswersWithoutABodyEndWithTheirHead) {
  for (const std::string_view framing :
       {"Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n", ""}) {
    for (const auto& [status, head_only] : {std::pair(200, true), {204, false}, {304, false}}) {
      SCOPED_TRACE(fmt::format("{} {}", status, framing));
      const std::string head = fmt::format("HTTP/1.1 {} Fine\r\n{}\r\n", status, framing);
      const Outcome outcome = read(head + "HTTP/1.1 200 OK\r\n\r\n", head_only);
      expect_whole(outcome, status, "");
      EXPECT_TRUE(outcome.done);
      EXPECT_TRUE(outcome.keep_alive);
      EXPECT_EQ(outcome.declared, 0u);
      EXPECT_EQ(outcome.consumed, head.size());
      EXPECT_EQ(outcome.headers.size(), framing.empty() ? 0u : 1u);
    }
  }
}

TEST(HttpResponseParser, PassesOverInterimAnswers) {
  const std::string input =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\nContent-Length: 9\r\n"
      "Connection: close\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
  const Outcome outcome = read(input);
  expect_whole(outcome, 200, "ab");
  EXPECT_TRUE(outcome.done);
  EXPECT_TRUE(outcome.keep_alive);
  EXPECT_EQ(outcome.headers.size(), 1u) << "the headers of interim answers are gone";
  EXPECT_EQ(outcome.consumed, input.size());
}

TEST(HttpResponseParser, LeavesTheBytesBehindTheEnd) {
  for (const std::string& answer :
       {with_header("Content-Length: 2") + "ab", with_header("Content-Length: 0"),
        kChunkedHead + "2\r\nab\r\n0\r\n\r\n"}) {
    for (const std::string_view surplus : {"\r", "\r\n", "HTTP/1.1 200 OK\r\n\r\n", "\n"}) {
      const Outcome outcome = read(answer + std::string(surplus));
      EXPECT_EQ(outcome.code, StatusCode::kOk);
      EXPECT_TRUE(outcome.done);
      EXPECT_EQ(outcome.consumed, answer.size());
    }
  }
}

// ---- Whether the connection is kept

TEST(HttpResponseParser, KeepsTheConnectionByVersionAndOption) {
  const auto keeps = [](std::string_view version, std::string_view options) {
    const Outcome outcome =
        read(fmt::format("HTTP/{} 200 OK\r\n{}Content-Length: 1\r\n\r\na", version, options));
    expect_whole(outcome, 200, "a");
    return outcome.keep_alive;
  };
  EXPECT_TRUE(keeps("1.1", ""));
  EXPECT_FALSE(keeps("1.0", ""));
  EXPECT_FALSE(keeps("1.1", "Connection: close\r\n"));
  EXPECT_FALSE(keeps("1.1", "CONNECTION: Close\r\n"));
  EXPECT_TRUE(keeps("1.1", "Connection: keep-alive\r\n"));
  EXPECT_TRUE(keeps("1.0", "Connection: Keep-Alive\r\n"));
  EXPECT_FALSE(keeps("1.0", "Connection: close\r\n"));
  EXPECT_TRUE(keeps("1.1", "Connection: x-closed, disclose\r\n"));
  EXPECT_FALSE(keeps("1.0", "Connection: x-keep-alive\r\n"));
}

TEST(HttpResponseParser, ConnectionIsAListInWhichCloseWins) {
  const auto keeps = [](std::string_view version, std::string_view options) {
    return read(fmt::format("HTTP/{} 200 OK\r\n{}Content-Length: 0\r\n\r\n", version, options))
        .keep_alive;
  };
  EXPECT_FALSE(keeps("1.1", "Connection: x-hop, close\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: close ,x-hop\r\n"));
  EXPECT_TRUE(keeps("1.0", "Connection: ,x-hop\t,\tkeep-alive,\r\n"));
  EXPECT_FALSE(keeps("1.1", "Connection: close\r\nConnection: keep-alive\r\n"));
  EXPECT_FALSE(keeps("1.0", "Connection: close, keep-alive\r\n"));
}

// RFC 9112, 6.1: the sender of such an answer did not know what it was saying.
TEST(HttpResponseParser, ChunksFromHttp10AreReadOnce) {
  const Outcome outcome = read(
      "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
      "1\r\na\r\n0\r\n\r\n");
  expect_whole(outcome, 200, "a");
  EXPECT_FALSE(outcome.keep_alive);
}

// ---- What is refused

TEST(HttpResponseParser, RefusesBadStatusLines) {
  for (const std::string_view line :
       {"", " HTTP/1.1 200 OK", "HTTP/2 200 OK", "HTTP/1.2 200 OK", "http/1.1 200 OK", "HTTP/1.1",
        "HTTP/1.1 ", "HTTP/1.1 20", "HTTP/1.1 2000", "HTTP/1.1 20x OK", "HTTP/1.1 200OK",
        "HTTP/1.1  200 OK", "HTTP/1.1\t200 OK", "HTTP/1.1 -20 OK", "HTTP/1.1 099 OK",
        "HTTP/1.1 600 OK", "SSH-2.0-OpenSSH_9.2"}) {
    expect_head_refused(fmt::format("{}\r\nContent-Length: 0\r\n\r\n", line));
  }
  expect_head_refused("\r\n\r\n");
  expect_head_refused("HTTP/1.1 200 O\0K\r\nContent-Length: 0\r\n\r\n"s);
  expect_head_refused("HTTP/1.1 200 O\rK\r\nContent-Length: 0\r\n\r\n");
}

TEST(HttpResponseParser, AcceptsEveryOtherStatus) {
  for (const int status : {200, 206, 301, 404, 412, 503, 599}) {
    const std::string head = fmt::format("HTTP/1.1 {}\r\nContent-Length: 0\r\n\r\n", status);
    expect_whole(read(head), status, "");
  }
}

TEST(HttpResponseParser, RefusesToSwitchProtocols) {
  expect_head_refused("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n");
}

TEST(HttpResponseParser, RefusesUnclearLengths) {
  expect_head_refused(with_header("Content-Length: 1\r\nContent-Length: 2"));
  expect_head_refused(with_header("Content-Length: 1\r\nTransfer-Encoding: chunked"));
  expect_head_refused(with_header("Transfer-Encoding: chunked\r\nContent-Length: 1"));
  expect_head_refused(with_header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"));
  for (const std::string_view encoding : {"", "gzip", "gzip, chunked", "chunked, chunked"}) {
    expect_head_refused(with_header(fmt::format("Transfer-Encoding: {}", encoding)));
  }
  for (const std::string_view length :
       {"", "-1", "+1", "0x1", "1a", "a", "1 2", "1,1", "1.0", "18446744073709551616"}) {
    expect_head_refused(with_header(fmt::format("Content-Length: {}", length)));
  }
}

TEST(HttpResponseParser, RefusesMalformedHeaders) {
  for (const std::string_view header :
       {"no colon", ": no name", "A: 1\r\n folded", "A: 1\r\n\tfolded: 2", " A: 1", "A : 1",
        "A B: 1", "A\xc3\xa4: 1", "A(: 1", "A: 1\rB: 2", "A: 1\r"}) {
    expect_head_refused(with_header(header));
  }
  expect_head_refused(with_header("A: 1\0002"s));
  expect_head_refused(with_header("A\0: 1"s));
}

TEST(HttpResponseParser, RefusesBareLineFeedsInAHead) {
  expect_head_refused("HTTP/1.1 200 OK\nContent-Length: 0\n\n");
  expect_head_refused("HTTP/1.1 200 OK\nContent-Length: 0\r\n\r\n");
  expect_head_refused("HTTP/1.1 200 OK\r\nA: 1\nContent-Length: 0\r\n\r\n");
  expect_head_refused("HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n\r\n");
  expect_head_refused("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\n");
  expect_head_refused("\nHTTP/1.1 200 OK\r\n\r\n");
  expect_head_refused("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\n");
}

TEST(HttpResponseParser, LimitsTheBytesOfAHead) {
  const std::string start = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nA: ";
  for (std::size_t size = kHeadBytesMax - 2; size <= kHeadBytesMax + 6; ++size) {
    SCOPED_TRACE(size);
    const std::string head = start + std::string(size - start.size() - 4, 'a') + "\r\n\r\n";
    const Outcome outcome = read_long(head + "ab");
    if (size <= kHeadBytesMax) {
      expect_whole(outcome, 200, "ab");
    } else {
      EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
      EXPECT_EQ(outcome.heads, 0);
    }
  }
  EXPECT_EQ(read_long(std::string(2 * kHeadBytesMax, 'a')).code, StatusCode::kUnavailable);
}

TEST(HttpResponseParser, TheLimitIsOfOneHeadNotOfWhatFollows) {
  const std::string interim =
      "HTTP/1.1 103 Early Hints\r\nA: " + std::string(40'000, 'a') + "\r\n\r\n";
  const std::string body(100'000, 'b');
  const std::string input = interim + interim + with_header("Content-Length: 100000") + body;
  expect_whole(read_long(input), 200, body);
}

TEST(HttpResponseParser, LimitsTheLinesOfAHead) {
  for (const int lines : {256, 257}) {
    std::string input = "HTTP/1.1 204 Fine\r\n";
    for (int i = 0; i < lines; ++i) {
      input += "A:\r\n";
    }
    input += "\r\n";
    if (lines == 256) {
      expect_whole(read(input), 204, "");
    } else {
      expect_head_refused(input);
    }
  }
}

TEST(HttpResponseParser, LimitsInterimAnswers) {
  std::string interim;
  for (int i = 0; i < 16; ++i) {
    interim += "HTTP/1.1 102 Processing\r\n\r\n";
  }
  expect_whole(read(interim + "HTTP/1.1 204 Fine\r\n\r\n"), 204, "");
  expect_head_refused(interim + "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 Fine\r\n\r\n");
}

TEST(HttpResponseParser, LimitsTheLinesOfATrailer) {
  std::string input = kChunkedHead + "0\r\n";
  for (int i = 0; i < 255; ++i) {
    input += "A:\r\n";
  }
  expect_whole(read(input + "\r\n"), 200, "");
  EXPECT_EQ(read(input + "A:\r\nA:\r\n").code, StatusCode::kUnavailable);
}

TEST(HttpResponseParser, RefusesMalformedChunks) {
  for (const std::string_view chunk :
       {"\r\n", ";x\r\n", "x\r\n", "-1\r\n", "+1\r\n", "0x1\r\na\r\n", "1 1\r\n", "1g\r\n", "5\n",
        "5\rx\r\n", "8000000000000000\r\n", "ffffffffffffffff\r\n", "10000000000000000\r\n",
        "100000000000000000000000000000001\r\n"}) {
    SCOPED_TRACE(::testing::PrintToString(chunk));
    const Outcome outcome = read(kChunkedHead + std::string(chunk));
    EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
    EXPECT_EQ(outcome.heads, 1);
    EXPECT_EQ(outcome.body, "");
    EXPECT_FALSE(outcome.done);
  }
  for (const std::string_view end : {"b\r\n", "\n", " \r\n", "0\r\n\r\n"}) {
    SCOPED_TRACE(::testing::PrintToString(end));
    const Outcome outcome = read(kChunkedHead + "1\r\na" + std::string(end));
    EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
    EXPECT_EQ(outcome.body, "a");
  }
  for (const std::string_view trailer : {"\n", "A: 1\n", "A: 1\r\n\n"}) {
    SCOPED_TRACE(::testing::PrintToString(trailer));
    const Outcome outcome = read(kChunkedHead + "0\r\n" + std::string(trailer));
    EXPECT_EQ(outcome.code, StatusCode::kUnavailable);
    EXPECT_FALSE(outcome.done);
  }
}

TEST(HttpResponseParser, TakesTheLargestChunkSize) {
  const Outcome outcome = read(kChunkedHead + "7FFFffffFFFFffff\r\nab");
  EXPECT_EQ(outcome.code, StatusCode::kOk);
  EXPECT_EQ(outcome.body, "ab");
  EXPECT_EQ(outcome.finish_code, StatusCode::kUnavailable);
}

TEST(HttpResponseParser, LimitsALineBetweenChunks) {
  const auto padded = [](std::string_view line, std::size_t size) {
    return std::string(line) + std::string(size - line.size() - 2, 'a') + "\r\n";
  };
  expect_whole(read(kChunkedHead + padded("1;", 1024) + "b\r\n0\r\n\r\n"), 200, "b");
  expect_whole(read(kChunkedHead + "0\r\n" + padded("A: ", 1024) + "\r\n"), 200, "");
  for (const std::string& line : {padded("1;", 1025), "0\r\n" + padded("A: ", 1025),
                                  std::string(1025, '0'), "1\r\na" + std::string(1025, 'b')}) {
    EXPECT_EQ(read(kChunkedHead + line).code, StatusCode::kUnavailable);
  }
}

// ---- The sink

TEST(HttpResponseParser, AFailureOfTheSinkIsPassedOn) {
  for (const std::string& input :
       {with_header("Content-Length: 2") + "ab", kChunkedHead + "2\r\nab\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nab"s}) {
    RecordingSink refuses_head;
    refuses_head.head_failure = {StatusCode::kResourceExhausted, "no room"};
    const auto head = HttpResponseParser(refuses_head, false).consume(as_bytes(input));
    ASSERT_FALSE(head.has_value());
    EXPECT_EQ(head.error().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(head.error().message(), "no room");
    EXPECT_EQ(refuses_head.body, "") << "nothing more is read of a refused answer";

    RecordingSink refuses_body;
    refuses_body.body_failure = {StatusCode::kInternal, "too long"};
    HttpResponseParser parser(refuses_body, false);
    const auto body = parser.consume(as_bytes(input));
    ASSERT_FALSE(body.has_value());
    EXPECT_EQ(body.error().code(), StatusCode::kInternal);
    EXPECT_EQ(body.error().message(), "too long");
    EXPECT_EQ(refuses_body.body, "ab");
    EXPECT_FALSE(parser.done());
  }
}

TEST(HttpResponseParser, ALengthOf64BitsReachesTheSink) {
  EXPECT_EQ(read(with_header("Content-Length: 18446744073709551615")).declared,
            18446744073709551615u);
}

TEST(HttpResponseParser, ABodyOfDeclaredLengthCanBeReceivedInPlace) {
  RecordingSink sink;
  HttpResponseParser parser(sink, false);
  EXPECT_EQ(parser.direct_bytes(), 0u);
  const std::string start = with_header("Content-Length: 10") + "ab";
  EXPECT_EQ(parser.consume(as_bytes(start)), start.size());
  EXPECT_EQ(parser.direct_bytes(), 8u);
  parser.take_direct(5);
  EXPECT_EQ(parser.direct_bytes(), 3u);
  EXPECT_EQ(parser.consume(as_bytes("h")), 1u) << "both ways may take turns";
  EXPECT_EQ(parser.direct_bytes(), 2u);
  EXPECT_FALSE(parser.done());
  EXPECT_EQ(parser.finish().code(), StatusCode::kUnavailable);
  parser.take_direct(2);
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.direct_bytes(), 0u);
  EXPECT_EQ(parser.consume(as_bytes("x")), 0u);
  EXPECT_EQ(sink.body, "abh") << "what went into its place is not reported";
}

TEST(HttpResponseParser, OnlyABodyOfDeclaredLengthCanBeReceivedInPlace) {
  for (const std::string& input : {kChunkedHead + "5\r\na", "HTTP/1.1 200 OK\r\n\r\na"s,
                                   with_header("Content-Length: 1") + "a", "HTTP/1.1 200"s}) {
    RecordingSink sink;
    HttpResponseParser parser(sink, false);
    EXPECT_EQ(parser.consume(as_bytes(input)), input.size());
    EXPECT_EQ(parser.direct_bytes(), 0u);
  }
}

// ---- The end of the connection

TEST(HttpResponseParser, TheEndOfTheConnectionCutsAnAnswerShort) {
  const auto finish = [](std::string_view input) {
    const Outcome outcome = read(input);
    EXPECT_EQ(outcome.code, StatusCode::kOk);
    EXPECT_FALSE(outcome.done);
    return outcome.finish_code;
  };
  for (const std::string_view rest :
       {"", "5", "5\r", "5\r\n", "5\r\nhell", "5\r\nhello", "5\r\nhello\r", "5\r\nhello\r\n", "0",
        "0\r\n", "0\r\n\r", "0\r\nA: 1\r\n"}) {
    EXPECT_EQ(finish(kChunkedHead + std::string(rest)), StatusCode::kUnavailable) << rest;
  }
  for (const std::string_view input :
       {"", "H", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\n\r", "HTTP/1.1 100 Continue\r\n\r\n"}) {
    EXPECT_EQ(finish(input), StatusCode::kUnavailable) << input;
  }
  EXPECT_EQ(finish(with_header("Content-Length: 2")), StatusCode::kUnavailable);
  EXPECT_EQ(finish(with_header("Content-Length: 2") + "a"), StatusCode::kUnavailable);
  EXPECT_EQ(finish("HTTP/1.1 200 OK\r\n\r\n"), StatusCode::kOk);
}

TEST(HttpResponseParser, SaysWhetherAnAnswerHadBegun) {
  RecordingSink sink;
  HttpResponseParser parser(sink, false);
  EXPECT_EQ(parser.finish().message(), "the connection was closed without an answer");
  EXPECT_EQ(parser.consume(as_bytes("H")), 1u);
  EXPECT_EQ(parser.finish().message(), "the answer was cut short in its head");
}

TEST(HttpResponseParser, ABodyUntilCloseIsDoneOnceTheConnectionEnded) {
  RecordingSink sink;
  HttpResponseParser parser(sink, false);
  const std::string input = "HTTP/1.1 200 OK\r\n\r\nab";
  EXPECT_EQ(parser.consume(as_bytes(input)), input.size());
  EXPECT_FALSE(parser.done());
  EXPECT_TRUE(parser.finish().ok());
  EXPECT_TRUE(parser.done());
  EXPECT_EQ(parser.consume(as_bytes("c")), 0u);
  EXPECT_EQ(sink.body, "ab");
}

}  // namespace
}  // namespace millrace
