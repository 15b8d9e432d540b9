#include "tests/servers/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>

#include "tests/servers_test/signing_curl.h"

namespace millrace::testing {
namespace {

// A socket that says exactly what it is told.
class PlainClient {
 public:
  explicit PlainClient(uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  ~PlainClient() { ::close(fd_); }

  void say(const std::string& text) {
    EXPECT_EQ(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), ssize_t(text.size()));
  }
  // Reads until the text has come, or the end.
  std::string hear_until(const std::string& text) {
    std::string heard;
    char c = 0;
    while (heard.find(text) == std::string::npos) {
      const ssize_t got = ::recv(fd_, &c, 1, 0);
      if (got <= 0) {
        last_error_ = got < 0 ? errno : 0;
        break;
      }
      heard += c;
    }
    return heard;
  }
  std::string hear_all() { return hear_until(std::string("\0never", 6)); }
  int last_error() const { return last_error_; }

 private:
  int fd_;
  int last_error_ = -1;
};

HttpResponse echo(const HttpRequest& request) {
  HttpResponse response;
  response.body = request.method + " " + request.path + " [" + request.body + "]";
  return response;
}

TEST(HttpServerTest, KeepsTheConnectionAndTakesPipelinedRequests) {
  HttpServer server(echo);
  PlainClient client(server.port());
  client.say(
      "GET /a%20b HTTP/1.1\r\nHost: x\r\n\r\nPUT /c HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz");
  EXPECT_TRUE(client.hear_until("]").ends_with("GET /a b []"));
  EXPECT_TRUE(client.hear_until("]").ends_with("PUT /c [xyz]"));
  EXPECT_EQ(server.connections_accepted(), 1u);
}

TEST(HttpServerTest, ReadsChunkedBodiesAndAnswersExpect) {
  HttpServer server(echo);
  PlainClient client(server.port());
  client.say("PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.hear_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.say("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: z\r\n\r\n");
  EXPECT_TRUE(client.hear_until("]").ends_with("[abcdefg]"));
}

TEST(HttpServerTest, HeadDeclaresTheLengthAndSendsNoBody) {
  HttpServer server(echo);
  PlainClient client(server.port());
  client.say("HEAD /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answer = client.hear_all();
  EXPECT_NE(answer.find("Content-Length: 10\r\n"), std::string::npos) << answer;
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST(HttpServerTest, RefusesWhatIsMalformedOrTooLarge) {
  HttpServerOptions options;
  options.header_bytes_max = 1000;
  options.body_bytes_max = 100;
  HttpServer server(echo, options);
  const auto status_of = [&](const std::string& text) {
    PlainClient client(server.port());
    client.say(text);
    return client.hear_until("\r\n").substr(0, 12);
  };
  EXPECT_EQ(status_of("GARBAGE\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status_of("GET /a HTTP/1.1\r\nA: b\n c\r\n\r\n"), "HTTP/1.1 400");
  EXPECT_EQ(status_of("PUT /a HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
            "HTTP/1.1 400");
  EXPECT_EQ(status_of("PUT /a HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), "HTTP/1.1 413");
  EXPECT_EQ(status_of("PUT /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status_of("GET /a HTTP/1.1\r\nA: " + std::string(2000, 'x')), "HTTP/1.1 431");
}

TEST(HttpServerTest, CutsResetsAndLiesAsAsked) {
  HttpServer server([](const HttpRequest& request) {
    HttpResponse response;
    response.body = "0123456789";
    if (request.path == "/fin") response.close_after_bytes = 4;
    if (request.path == "/rst") response.reset_after_bytes = 4;
    if (request.path == "/drop") response.drop_connection = true;
    if (request.path == "/lie") response.declared_length = 3;
    if (request.path == "/chunked") response.chunked = true;
    if (request.path == "/drip") response.drip_bytes_per_second = 1000;
    response.close_connection = true;
    return response;
  });
  const auto fetch = [&](const std::string& path, int& error) {
    PlainClient client(server.port());
    client.say("GET " + path + " HTTP/1.1\r\n\r\n");
    const std::string answer = client.hear_all();
    error = client.last_error();
    return answer.empty() ? answer : answer.substr(answer.find("\r\n\r\n") + 4);
  };
  int error = -1;
  EXPECT_EQ(fetch("/fin", error), "0123");
  EXPECT_EQ(error, 0);
  EXPECT_EQ(fetch("/rst", error), "0123");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_EQ(fetch("/drop", error), "");
  EXPECT_EQ(error, ECONNRESET);
  EXPECT_EQ(fetch("/lie", error), "0123456789");
  EXPECT_EQ(fetch("/chunked", error), "a\r\n0123456789\r\n0\r\n\r\n");
  EXPECT_EQ(fetch("/drip", error), "0123456789");
}

TEST(HttpServerTest, StopsWithIdleStalledAndDelayedConnections) {
  auto server = std::make_unique<HttpServer>([](const HttpRequest& request) {
    HttpResponse response;
    response.body = std::string(100'000'000, 'x');  // More than the socket buffers hold.
    if (request.path == "/late") response.delay_before = std::chrono::hours(1);
    return response;
  });
  PlainClient idle(server->port());
  PlainClient half(server->port());
  PlainClient stalled(server->port());
  PlainClient late(server->port());
  half.say("PUT /a HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc");
  stalled.say("GET /a HTTP/1.1\r\n\r\n");
  late.say("GET /late HTTP/1.1\r\n\r\n");
  EXPECT_EQ(stalled.hear_until("\r\n"), "HTTP/1.1 200 OK\r\n");
  while (server->connections_accepted() < 4) {
    std::this_thread::yield();
  }
  server.reset();
  EXPECT_EQ(late.hear_all(), "");
}

TEST(HttpServerTest, SpeaksTlsWithItsOwnAuthority) {
  const TestTls tls;
  const std::string bundle =
      (std::filesystem::temp_directory_path() / ("millrace-ca-" + std::to_string(::getpid())))
          .string();
  tls.write_ca_bundle(bundle);
  HttpServerOptions options;
  options.tls = tls.server();
  HttpServer server(echo, options);
  CurlOptions trusting;
  trusting.sign = false;
  trusting.ca_bundle = bundle;
  SigningCurl client(server.url(), trusting);
  EXPECT_EQ(client.send("PUT", "/x", {}, std::string(3'000'000, 'y')).body.size(), 3'000'000 + 9u);
  EXPECT_EQ(client.send("GET", "/x").body, "GET /x []");
  EXPECT_EQ(server.connections_accepted(), 1u);

  const TestTls other;
  other.write_ca_bundle(bundle);
  SigningCurl wary(server.url(), trusting);
  EXPECT_EQ(wary.send("GET", "/x").curl_code, 60);  // CURLE_PEER_FAILED_VERIFICATION
  std::filesystem::remove(bundle);
}

}  // namespace
}  // namespace millrace::testing
