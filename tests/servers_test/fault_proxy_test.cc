#include "tests/servers/fault_proxy.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/servers/ceph_server.h"
#include "tests/servers/signed_request.h"

namespace millrace::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A client that sees every byte and how the connection ended.
class RawClient {
 public:
  enum class End { kClosed, kReset, kStillOpen };

  explicit RawClient(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      ADD_FAILURE() << "connect: " << errno;
    }
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  void send(std::string_view bytes) {
    // The socket reports a reset once only: what the send has seen, read_all() must not forget.
    if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) reset_ = true;
  }

  // Reads until the peer ends the connection, or says nothing for as long as `quiet`.
  End read_all(milliseconds quiet = milliseconds(500)) {
    const timeval timeout{.tv_sec = quiet.count() / 1000,
                          .tv_usec = static_cast<suseconds_t>(quiet.count() % 1000 * 1000)};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    std::array<char, 65536> bytes;
    for (;;) {
      const ssize_t count = recv(fd_, bytes.data(), bytes.size(), 0);
      if (count == 0) return reset_ ? End::kReset : End::kClosed;
      if (count < 0) return errno == EAGAIN ? End::kStillOpen : End::kReset;
      received_.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }

  const std::string& received() const { return received_; }
  std::string body() const {
    const auto end = received_.find("\r\n\r\n");
    return end == std::string::npos ? "" : received_.substr(end + 4);
  }

 private:
  int fd_;
  bool reset_ = false;
  std::string received_;
};

using End = RawClient::End;

class FaultProxyTest : public ::testing::Test {
 protected:
  // Unlike any body with a bit changed, and longer than one buffer of the proxy.
  static std::string pattern(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t x = 12345;
    for (char& c : bytes) {
      x = x * 1664525 + 1013904223;
      c = static_cast<char>(x >> 24);
    }
    return bytes;
  }

  void SetUp() override {
    // Readable without a signature, for the raw client.
    ASSERT_EQ(send_signed({.method = "PUT",
                           .url = direct("object"),
                           .body = object_,
                           .headers = {"x-amz-acl: public-read"}})
                  .status,
              200);
    proxy_.set_settings({.logged_requests_max = 100});
  }

  static std::string path(std::string_view key) {
    return fmt::format("/{}/{}", CephServer::kSharedBucket, key);
  }
  static std::string direct(std::string_view key) {
    return CephServer::shared().endpoint() + path(key);
  }
  std::string through(std::string_view key) const { return proxy_.endpoint() + path(key); }

  static std::string get(std::string_view headers = "") {
    return fmt::format("GET {} HTTP/1.1\r\nHost: x\r\n{}\r\n", path("object"), headers);
  }

  // One raw GET of the object that suffers the fault.
  End get_with(Fault fault, RawClient& client, std::string_view headers = "") {
    proxy_.set_policy(fail_next(1, fault));
    client.send(get(headers));
    return client.read_all();
  }

  const std::string object_ = pattern(600'000);
  FaultProxy proxy_{CephServer::shared().endpoint()};
};

int flipped_bits(std::string_view a, std::string_view b) {
  int count = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    count += __builtin_popcount(static_cast<unsigned char>(a[i] ^ b[i]));
  }
  return count;
}

TEST_F(FaultProxyTest, PassesSignedRequestsUnchanged) {
  const std::string body = pattern(3'000'000);
  EXPECT_EQ(send_signed({.method = "PUT", .url = through("t/1"), .body = body}).status, 200);
  EXPECT_EQ(send_signed({.url = through("t/1")}).body, body);
  const SignedAnswer part =
      send_signed({.url = through("t/1"), .headers = {"Range: bytes=1000-1999"}});
  EXPECT_EQ(part.status, 206);
  EXPECT_EQ(part.body, body.substr(1000, 1000));
  const SignedAnswer head = send_signed({.method = "HEAD", .url = through("t/1")});
  EXPECT_EQ(head.status, 200) << head.error;
  EXPECT_EQ(head.headers.at("content-length"), "3000000");
  const SignedAnswer list =
      send_signed({.url = fmt::format("{}/{}?list-type=2&prefix=t%2F", proxy_.endpoint(),
                                      CephServer::kSharedBucket)});
  EXPECT_THAT(list.body, HasSubstr("<Key>t/1</Key>"));
  EXPECT_EQ(send_signed({.method = "DELETE", .url = through("t/1")}).status, 204);
  EXPECT_EQ(send_signed({.url = through("t/1")}).status, 404);

  const ProxyStats stats = proxy_.stats();
  EXPECT_EQ(stats.requests, 7U);
  EXPECT_EQ(stats.requests_by_method.at("GET"), 4U);
  EXPECT_EQ(stats.requests_by_method.at("PUT"), 1U);
  EXPECT_EQ(stats.faults_total(), 0U);
  EXPECT_EQ(stats.body_bytes_up, body.size());
  EXPECT_GE(stats.body_bytes_down, body.size() + 1000);
  EXPECT_EQ(stats.connections_opened, 7U);
  EXPECT_EQ(stats.upstream_failures, 0U);
  ASSERT_EQ(proxy_.requests().size(), 7U);
  EXPECT_EQ(proxy_.requests()[2].range, "bytes=1000-1999");
}

TEST_F(FaultProxyTest, PassesMultipartUploads) {
  const auto id_of = [](const std::string& body) {
    const auto begin = body.find("<UploadId>") + 10;
    return body.substr(begin, body.find('<', begin) - begin);
  };
  const std::string part = pattern(5 << 20);
  const SignedAnswer created =
      send_signed({.method = "POST", .url = through("multipart?uploads=")});
  ASSERT_EQ(created.status, 200) << created.body;
  const std::string id = id_of(created.body);
  std::string manifest = "<CompleteMultipartUpload>";
  for (int number = 1; number <= 2; ++number) {
    const SignedAnswer put =
        send_signed({.method = "PUT",
                     .url = through(fmt::format("multipart?partNumber={}&uploadId={}", number, id)),
                     .body = part});
    ASSERT_EQ(put.status, 200) << put.body;
    manifest += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", number,
                            put.headers.at("etag"));
  }
  const SignedAnswer done = send_signed({.method = "POST",
                                         .url = through("multipart?uploadId=" + id),
                                         .body = manifest + "</CompleteMultipartUpload>"});
  EXPECT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(send_signed({.url = direct("multipart")}).body, part + part);
}

TEST_F(FaultProxyTest, KeepsConnectionsAliveAndCountsThem) {
  RawClient client(proxy_.port());
  for (int i = 0; i < 3; ++i)
    client.send(get("Range: bytes=0-9\r\n"));
  EXPECT_EQ(client.read_all(), End::kStillOpen);
  std::size_t answers = 0;
  for (std::size_t at = 0; (at = client.received().find("HTTP/1.1 206", at)) != std::string::npos;
       ++at) {
    ++answers;
  }
  EXPECT_EQ(answers, 3U);
  EXPECT_EQ(proxy_.stats().connections_opened, 1U);
  EXPECT_EQ(proxy_.stats().connections_open, 1U);
  proxy_.reset_stats();
  EXPECT_EQ(proxy_.stats().requests, 0U);
  EXPECT_EQ(proxy_.stats().connections_open, 1U);
  proxy_.reset_connections();
  EXPECT_EQ(client.read_all(), End::kReset);
}

TEST_F(FaultProxyTest, PassesContinueAndEarlyRefusals) {
  RawClient client(proxy_.port());
  client.send(
      fmt::format("PUT {} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
                  "Expect: 100-continue\r\n\r\n",
                  path("forbidden")));
  client.read_all();
  EXPECT_THAT(client.received(), HasSubstr(" 403 ")) << "no signature, so no body is wanted";
  const SignedAnswer put = send_signed({.method = "PUT",
                                        .url = through("continued"),
                                        .body = "0123456789",
                                        .headers = {"Expect: 100-continue"}});
  EXPECT_EQ(put.status, 200) << put.error;
}

TEST_F(FaultProxyTest, PassesChunkedRequests) {
  ASSERT_EQ(send_signed({.method = "PUT",
                         .url = fmt::format("{}/{}?acl=", CephServer::shared().endpoint(),
                                            CephServer::kSharedBucket),
                         .headers = {"x-amz-acl: public-read-write"}})
                .status,
            200);
  RawClient client(proxy_.port());
  client.send(
      fmt::format("PUT {} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
                  "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
                  path("chunked")));
  client.send(get("Range: bytes=0-9\r\n"));
  client.read_all();
  EXPECT_THAT(client.received(), HasSubstr("HTTP/1.1 206")) << client.received();
  EXPECT_EQ(proxy_.stats().body_bytes_up, 11U);
  EXPECT_EQ(send_signed({.method = "PUT",
                         .url = fmt::format("{}/{}?acl=", CephServer::shared().endpoint(),
                                            CephServer::kSharedBucket),
                         .headers = {"x-amz-acl: private"}})
                .status,
            200);
}

TEST_F(FaultProxyTest, AnswersErrorsWithoutForwarding) {
  const std::vector<std::pair<Fault, std::string>> cases = {
      {Fault::kInternalError, "500"},      {Fault::kBadGateway, "502"},
      {Fault::kServiceUnavailable, "503"}, {Fault::kGatewayTimeout, "504"},
      {Fault::kSlowDown, "503"},           {Fault::kOkError, "200"}};
  proxy_.set_settings({.retry_after = std::chrono::seconds(3)});
  for (const auto& [fault, status] : cases) {
    proxy_.set_policy(fail_next(1, fault));
    const SignedAnswer put =
        send_signed({.method = "PUT", .url = through("unwritten"), .body = pattern(2'000'000)});
    EXPECT_EQ(fmt::format("{}", put.status), status) << fault_name(fault);
    EXPECT_THAT(put.body, HasSubstr("<Error><Code>")) << fault_name(fault);
    EXPECT_EQ(put.headers.contains("retry-after"), fault == Fault::kSlowDown);
    EXPECT_EQ(proxy_.stats().count(fault), 1U) << fault_name(fault);
  }
  EXPECT_EQ(send_signed({.url = through("unwritten")}).status, 404);
}

TEST_F(FaultProxyTest, KeepsTheConnectionAfterAnInjectedError) {
  RawClient client(proxy_.port());
  EXPECT_EQ(get_with(Fault::kSlowDown, client), End::kStillOpen);
  EXPECT_THAT(client.received(), HasSubstr("<Code>SlowDown</Code>"));
  client.send(get("Range: bytes=0-9\r\n"));
  client.read_all();
  EXPECT_THAT(client.received(), HasSubstr("HTTP/1.1 206"));
}

TEST_F(FaultProxyTest, ExecutesAndThenHidesTheAnswer) {
  for (const Fault fault : {Fault::kLostAnswer, Fault::kOkErrorExecuted}) {
    const std::string key = fmt::format("executed/{}", fault_name(fault));
    proxy_.set_policy(fail_next(1, fault));
    const SignedAnswer put = send_signed({.method = "PUT", .url = through(key), .body = "written"});
    EXPECT_EQ(put.status, fault == Fault::kLostAnswer ? 0 : 200);
    EXPECT_EQ(send_signed({.url = direct(key)}).body, "written") << fault_name(fault);
    EXPECT_EQ(proxy_.stats().count(fault), 1U);
  }
}

TEST_F(FaultProxyTest, EndsConnectionsAsEachFaultSays) {
  struct Case {
    Fault fault;
    End end;
    std::size_t body_bytes;
  };
  const std::size_t half = object_.size() / 2;
  for (const Case& c : std::vector<Case>{{Fault::kResetBeforeForward, End::kReset, 0},
                                         {Fault::kCloseWithoutAnswer, End::kClosed, 0},
                                         {Fault::kStall, End::kStillOpen, 0},
                                         {Fault::kLostAnswer, End::kReset, 0},
                                         {Fault::kResetInsideHead, End::kReset, 0},
                                         {Fault::kResetInsideBody, End::kReset, half},
                                         {Fault::kTruncateBody, End::kClosed, half},
                                         {Fault::kStallInsideBody, End::kStillOpen, half},
                                         {Fault::kResetAfterBody, End::kReset, object_.size()}}) {
    RawClient client(proxy_.port());
    EXPECT_EQ(get_with(c.fault, client), c.end) << fault_name(c.fault);
    EXPECT_EQ(client.body(), object_.substr(0, c.body_bytes)) << fault_name(c.fault);
    EXPECT_EQ(proxy_.stats().count(c.fault), 1U) << fault_name(c.fault);
    if (c.fault == Fault::kResetInsideHead) {
      EXPECT_THAT(client.received(), StartsWith("HTTP/1.1 200"));
    }
  }
}

TEST_F(FaultProxyTest, LiesAboutTheLength) {
  RawClient client(proxy_.port());
  EXPECT_EQ(get_with(Fault::kShortLength, client), End::kStillOpen);
  EXPECT_THAT(client.received(), HasSubstr("Content-Length: 300000\r\n"));
  EXPECT_EQ(client.body(), object_.substr(0, 300'000));
  client.send(get("Range: bytes=0-9\r\n"));
  client.read_all();
  EXPECT_THAT(client.received(), HasSubstr("HTTP/1.1 206")) << "keep-alive goes on";
}

TEST_F(FaultProxyTest, CutsChunkedListsConsistently) {
  proxy_.set_policy(fail_next(1, Fault::kShortLength));
  const SignedAnswer list = send_signed(
      {.url = fmt::format("{}/{}?list-type=2", proxy_.endpoint(), CephServer::kSharedBucket)});
  EXPECT_EQ(list.curl_code, 0) << list.error;
  EXPECT_EQ(list.status, 200);
  EXPECT_THAT(list.body, Not(HasSubstr("</ListBucketResult>")));
}

TEST_F(FaultProxyTest, SendsSurplusBytes) {
  RawClient client(proxy_.port());
  EXPECT_EQ(get_with(Fault::kLongBody, client), End::kStillOpen);
  EXPECT_THAT(client.received(), HasSubstr("Content-Length: 600000\r\n"));
  EXPECT_EQ(client.body(), object_ + std::string(512, '#'));
}

TEST_F(FaultProxyTest, FlipsOneBitOfAnAnswer) {
  for (int i = 0; i < 3; ++i) {
    RawClient client(proxy_.port());
    EXPECT_EQ(get_with(Fault::kFlipResponseBit, client), End::kStillOpen);
    ASSERT_EQ(client.body().size(), object_.size());
    EXPECT_EQ(flipped_bits(client.body(), object_), 1);
  }
}

TEST_F(FaultProxyTest, FlipsOneBitOfARequest) {
  proxy_.set_policy(fail_next(2, Fault::kFlipRequestBit));
  const SignedAnswer checked =
      send_signed({.method = "PUT", .url = through("flipped"), .body = object_});
  EXPECT_EQ(checked.status, 400) << "the server compares the hash that was signed";
  const SignedAnswer unchecked = send_signed(
      {.method = "PUT", .url = through("flipped"), .body = object_, .unsigned_payload = true});
  EXPECT_EQ(unchecked.status, 200) << unchecked.body;
  EXPECT_EQ(flipped_bits(send_signed({.url = direct("flipped")}).body, object_), 1);
  EXPECT_EQ(proxy_.stats().count(Fault::kFlipRequestBit), 2U);
}

TEST_F(FaultProxyTest, ChangesHeaders) {
  RawClient range(proxy_.port());
  get_with(Fault::kWrongContentRange, range, "Range: bytes=10-19\r\n");
  EXPECT_THAT(range.received(), HasSubstr("Content-Range: bytes 11-20/600000\r\n"));
  EXPECT_EQ(range.body(), object_.substr(10, 10));

  const std::string etag = send_signed({.method = "HEAD", .url = direct("object")}).headers["etag"];
  proxy_.set_policy(fail_next(1, Fault::kChangedEtag));
  const SignedAnswer head = send_signed({.method = "HEAD", .url = through("object")});
  EXPECT_NE(head.headers.at("etag"), etag);
  EXPECT_EQ(head.headers.at("etag").size(), etag.size());
}

TEST_F(FaultProxyTest, CountsFaultsThatHadNoPlace) {
  for (const Fault fault : {Fault::kFlipRequestBit, Fault::kFlipResponseBit, Fault::kTruncateBody,
                            Fault::kWrongContentRange, Fault::kOkError}) {
    proxy_.reset_stats();
    proxy_.set_policy(fail_next(1, fault));
    EXPECT_EQ(send_signed({.method = "HEAD", .url = through("object")}).status, 200);
    EXPECT_EQ(proxy_.stats().faults_without_effect, 1U) << fault_name(fault);
    EXPECT_EQ(proxy_.stats().faults_total(), 0U) << fault_name(fault);
  }
}

TEST_F(FaultProxyTest, DripsAndDelays) {
  proxy_.set_settings({.drip_bytes_per_second = 2000});
  RawClient dripped(proxy_.port());
  const auto begin = steady_clock::now();
  EXPECT_EQ(get_with(Fault::kDrip, dripped, "Range: bytes=0-999\r\n"), End::kStillOpen);
  EXPECT_EQ(dripped.body(), object_.substr(0, 1000));
  // About 0.6 s for the answer with its head, then 0.5 s of silence until the client stops reading.
  EXPECT_GE(steady_clock::now() - begin, milliseconds(950));

  proxy_.set_settings({.latency = milliseconds(200)});
  const auto sent = steady_clock::now();
  EXPECT_EQ(send_signed({.url = through("object")}).body, object_);
  EXPECT_GE(steady_clock::now() - sent, milliseconds(200));

  proxy_.set_settings({.bandwidth_bytes_per_second = 2'000'000});
  const auto paced = steady_clock::now();
  EXPECT_EQ(send_signed({.url = through("object")}).body, object_);
  EXPECT_GE(steady_clock::now() - paced, milliseconds(250));
}

TEST_F(FaultProxyTest, RefusesConnectionsBeyondTheLimit) {
  proxy_.set_settings({.connections_max = 1});
  RawClient first(proxy_.port());
  first.send(get("Range: bytes=0-9\r\n"));
  EXPECT_EQ(first.read_all(), End::kStillOpen);
  RawClient second(proxy_.port());
  second.send(get());
  EXPECT_EQ(second.read_all(), End::kReset);
  EXPECT_EQ(proxy_.stats().connections_refused, 1U);
}

TEST_F(FaultProxyTest, EndsPromptlyWithStalledAndIdleConnections) {
  auto proxy = std::make_unique<FaultProxy>(CephServer::shared().endpoint());
  proxy->set_policy(fail_next(2, Fault::kStall));
  RawClient stalled(proxy->port());
  stalled.send(get());
  RawClient half_sent(proxy->port());
  half_sent.send("PUT /x HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf");
  RawClient idle(proxy->port());
  RawClient unread(proxy->port());
  for (int i = 0; i < 20; ++i)
    unread.send(get());  // More than the socket buffers hold.
  while (proxy->stats().requests < 3)
    std::this_thread::sleep_for(milliseconds(1));
  const auto begin = steady_clock::now();
  proxy.reset();
  EXPECT_LT(steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_NE(stalled.read_all(), End::kStillOpen);
}

TEST_F(FaultProxyTest, ResetsClientsOfADeadServer) {
  FaultProxy proxy("127.0.0.1", 1);
  RawClient client(proxy.port());
  client.send(get());
  EXPECT_EQ(client.read_all(), End::kReset);
  EXPECT_EQ(proxy.stats().upstream_failures, 1U);
}

TEST_F(FaultProxyTest, NeverLetsADamagedAnswerLookWholeToCurl) {
  // The faults of which HTTP itself tells the client: whatever curl calls complete must be right.
  const auto faults = all_faults({.stalls = false, .honest_bytes = true});
  proxy_.set_settings({.drip_bytes_per_second = 10'000'000});
  proxy_.set_policy(random_faults(7, 0.5, faults));
  std::atomic<int> complete = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) {
        const SignedAnswer got = send_signed({.url = through("object")});
        if (got.curl_code != 0 || got.status != 200) continue;
        EXPECT_TRUE(got.body == object_);
        ++complete;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_GT(complete, 60);
  EXPECT_GT(proxy_.stats().faults_total(), 40U);
}

TEST(FaultPolicyTest, DrawsTheSameFromTheSameSeed) {
  const auto draw = [](std::uint64_t seed) {
    const FaultPolicy policy = random_faults(
        seed, 0.2,
        {{.fault = Fault::kSlowDown, .weight = 3}, {.fault = Fault::kStall, .weight = 1}});
    std::vector<Fault> drawn;
    ProxiedRequest request;
    for (request.sequence = 0; request.sequence < 10'000; ++request.sequence) {
      drawn.push_back(policy(request));
    }
    return drawn;
  };
  const auto faults = draw(1);
  EXPECT_EQ(faults, draw(1));
  EXPECT_NE(faults, draw(2));
  const auto count = [&](Fault fault) {
    return static_cast<double>(std::count(faults.begin(), faults.end(), fault));
  };
  EXPECT_NEAR(count(Fault::kSlowDown), 1500, 150);
  EXPECT_NEAR(count(Fault::kStall), 500, 100);
}

TEST(FaultPolicyTest, CountsOnlyAcceptedRequests) {
  const auto is_put = [](const ProxiedRequest& request) { return request.method == "PUT"; };
  const FaultPolicy next = fail_next(1, Fault::kSlowDown, is_put);
  const FaultPolicy second = fail_nth(2, Fault::kSlowDown, is_put);
  ProxiedRequest get;
  get.method = "GET";
  ProxiedRequest put;
  put.method = "PUT";
  EXPECT_EQ(next(get), Fault::kNone);
  EXPECT_EQ(next(put), Fault::kSlowDown);
  EXPECT_EQ(next(put), Fault::kNone);
  EXPECT_EQ(second(put), Fault::kNone);
  EXPECT_EQ(second(get), Fault::kNone);
  EXPECT_EQ(second(put), Fault::kSlowDown);
  EXPECT_EQ(second(put), Fault::kNone);
}

TEST(FaultPolicyTest, NamesEveryFault) {
  for (std::size_t i = 0; i < kFaultCount; ++i) {
    const auto fault = static_cast<Fault>(i);
    EXPECT_EQ(fault_from_name(fault_name(fault)), fault);
  }
  EXPECT_EQ(fault_from_name("no-such-fault"), std::nullopt);
}

}  // namespace
}  // namespace millrace::testing
