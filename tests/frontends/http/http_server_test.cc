#include "frontends/http/http_server.h"

#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "base/thread_pool.h"
#include "frontends/http/http_call.h"
#include "tests/frontends/http/raw_client.h"

namespace millrace {
namespace {

using HandleCall = std::function<void(HttpCall, Completion<HttpAnswer>)>;

class FunctionHandler final : public HttpHandler {
 public:
  explicit FunctionHandler(HandleCall handle) : handle_(std::move(handle)) {}
  void handle(HttpCall call, Completion<HttpAnswer> done) override {
    handle_(std::move(call), std::move(done));
  }

 private:
  const HandleCall handle_;
};

// Tells back what was asked.
void echo(HttpCall call, Completion<HttpAnswer> done) {
  done.complete(text_answer(200, "text/plain",
                            std::string(http_method_name(call.request.method)) + " " +
                                call.request.path + "?" + call.request.query + " by " +
                                call.context.principal() + " " + call.request.body));
}

class ServerFixture {
 public:
  explicit ServerFixture(HandleCall handle = echo, HttpServerOptions options = {},
                         std::size_t queued_calls_max = 1024)
      : work_({.name = "work", .threads = 4, .queued_tasks_max = queued_calls_max}),
        handler_(std::move(handle)),
        server_(loop_, work_, handler_, options) {
    char name[] = "/tmp/millrace-http-XXXXXX";
    directory_ = ::mkdtemp(name);
    auto socket = ListeningSocket::unix_socket(path());
    EXPECT_TRUE(socket) << (socket ? "" : socket.error().to_string());
    server_.listen(*std::move(socket));
  }
  ~ServerFixture() {
    server_.stop(system_clock().now());
    std::filesystem::remove_all(directory_);
  }

  std::string path() const { return directory_ + "/http.sock"; }
  HttpServer& server() { return server_; }
  RawClient client() const { return RawClient(path()); }

 private:
  std::string directory_;
  EventLoop loop_{"net"};
  ThreadPool work_;
  FunctionHandler handler_;
  HttpServer server_;
};

std::string request(std::string_view line, std::string_view headers = "") {
  return std::string(line) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) + "\r\n";
}

// ---- What is right

TEST(HttpServer, AnswersManyRequestsOverOneConnection) {
  ServerFixture fixture;
  RawClient client = fixture.client();
  for (int i = 0; i < 100; ++i) {
    const RawClient::Answer answer = client.get("/a/b?c=" + std::to_string(i));
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body,
              "GET /a/b?c=" + std::to_string(i) + " by uid:" + std::to_string(::getuid()) + " ");
    EXPECT_TRUE(answer.keep_alive);
    EXPECT_TRUE(answer.headers.has("Date"));
  }
  EXPECT_EQ(fixture.server().connections(), 1U);
}

TEST(HttpServer, TakesBodiesOfALengthAndInChunks) {
  ServerFixture fixture;
  RawClient client = fixture.client();
  const auto length = client.ask(request("PUT /x", "Content-Length: 5\r\n") + "hello");
  EXPECT_TRUE(length.body.ends_with(" hello")) << length.body;
  const auto chunks = client.ask(request("POST /x", "Transfer-Encoding: chunked\r\n") +
                                 "3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nTrailer: 1\r\n\r\n");
  EXPECT_TRUE(chunks.body.ends_with(" hello")) << chunks.body;
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  ServerFixture fixture;
  RawClient client = fixture.client();
  std::string text;
  for (int i = 0; i < 50; ++i)
    text += request("GET /" + std::to_string(i));
  ASSERT_TRUE(client.send(text));
  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(client.receive().body.starts_with("GET /" + std::to_string(i) + "?"));
}

TEST(HttpServer, TellsAClientThatWaitsToSendItsBody) {
  ServerFixture fixture;
  RawClient client = fixture.client();
  ASSERT_TRUE(client.send(request("PUT /x", "Content-Length: 2\r\nExpect: 100-continue\r\n")));
  EXPECT_EQ(client.receive_some(), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(client.ask("ok").body.ends_with(" ok"));
}

TEST(HttpServer, SendsNoBodyToAHead) {
  ServerFixture fixture;
  RawClient client = fixture.client();
  const auto answer = client.ask(request("HEAD /x"), true);
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.headers.get("Content-Length"), "0");
  EXPECT_TRUE(client.get("/y").body.starts_with("GET /y"));
}

TEST(HttpServer, EndsTheConnectionWhereTheClientAsksForIt) {
  ServerFixture fixture;
  RawClient closing = fixture.client();
  EXPECT_FALSE(closing.ask(request("GET /", "Connection: close\r\n")).keep_alive);
  EXPECT_TRUE(closing.ended());
  RawClient old = fixture.client();
  EXPECT_EQ(old.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_TRUE(old.ended());
  RawClient old_keeping = fixture.client();
  EXPECT_EQ(old_keeping.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").status, 200);
  EXPECT_EQ(old_keeping.get("/").status, 200);
}

// ---- Bodies of answers

// `pieces` of `bytes` each, made when they are asked for, on another thread.
class PiecedStream final : public HttpBodyStream {
 public:
  PiecedStream(int pieces, std::size_t bytes, std::optional<std::uint64_t> length, int fail_at = -1)
      : left_(pieces), bytes_(bytes), length_(length), fail_at_(fail_at) {}
  std::optional<std::uint64_t> length() const override { return length_; }
  void next(const RequestContext&, Completion<Slice> done) override {
    ++asked;
    if (left_ == fail_at_) {
      done.complete(failure(StatusCode::kUnavailable, "the source broke"));
    } else {
      done.complete(left_-- > 0 ? Slice::from_string(std::string(bytes_, 'x')) : Slice());
    }
  }
  std::atomic<int> asked = 0;

 private:
  int left_;
  const std::size_t bytes_;
  const std::optional<std::uint64_t> length_;
  const int fail_at_;
};

HandleCall answer_with(HttpBody body) {
  return [body](HttpCall, Completion<HttpAnswer> done) {
    done.complete(HttpAnswer{.status = 200, .headers = {}, .body = body});
  };
}

TEST(HttpServer, StreamsABodyInPiecesWithAndWithoutALength) {
  ServerFixture chunked(answer_with(std::make_shared<PiecedStream>(64, 100'000, std::nullopt)));
  RawClient first = chunked.client();
  const auto in_chunks = first.get("/");
  EXPECT_EQ(in_chunks.headers.get("Transfer-Encoding"), "chunked");
  EXPECT_EQ(in_chunks.body, std::string(6'400'000, 'x'));
  EXPECT_TRUE(in_chunks.keep_alive);

  ServerFixture known(answer_with(std::make_shared<PiecedStream>(64, 100'000, 6'400'000)));
  RawClient second = known.client();
  const auto of_length = second.get("/");
  EXPECT_EQ(of_length.headers.get("Content-Length"), "6400000");
  EXPECT_EQ(of_length.body, std::string(6'400'000, 'x'));
  EXPECT_TRUE(of_length.keep_alive);

  ServerFixture old(answer_with(std::make_shared<PiecedStream>(3, 10, std::nullopt)));
  RawClient third = old.client();
  EXPECT_EQ(third.ask("GET / HTTP/1.0\r\n\r\n").body, std::string(30, 'x'));
  EXPECT_TRUE(third.ended());
}

TEST(HttpServer, CutsTheConnectionWhenAStreamBreaksOrIsNotAsLongAsItSaid) {
  const std::array streams = {
      std::make_shared<PiecedStream>(8, 10, std::nullopt, 3),
      std::make_shared<PiecedStream>(8, 10, 90),
      std::make_shared<PiecedStream>(8, 10, 75),
  };
  for (const auto& stream : streams) {
    ServerFixture fixture(answer_with(stream));
    RawClient client = fixture.client();
    EXPECT_EQ(client.get("/").status, 0) << "a broken body must not look whole";
  }
}

TEST(HttpServer, AsksForNoMorePiecesThanTheClientTakes) {
  const auto stream = std::make_shared<PiecedStream>(1'000, 1'000'000, std::nullopt);
  ServerFixture fixture(answer_with(stream));
  RawClient client = fixture.client();
  ASSERT_TRUE(client.send(request("GET /")));
  // The head shows that it has begun; a gigabyte would follow.
  EXPECT_FALSE(client.receive_some().empty());
  EXPECT_LT(stream->asked, 10);
}

TEST(HttpServer, SendsAPartOfAFileByTheKernel) {
  const std::string content = "0123456789" + std::string(9'000'000, 'y') + "end";
  char name[] = "/tmp/millrace-http-file-XXXXXX";
  const int fd = ::mkstemp(name);
  ASSERT_EQ(::write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  const auto owner = std::make_shared<File>(File::adopt(fd, name));
  ServerFixture fixture(answer_with(HttpFileBody{fd, {5, content.size() - 5}, owner}));
  RawClient client = fixture.client();
  EXPECT_TRUE(client.get("/").body == content.substr(5));
  EXPECT_TRUE(client.get("/").body == content.substr(5));
  // A file that was cut meanwhile must not look whole.
  ASSERT_EQ(::ftruncate(fd, 1000), 0);
  EXPECT_EQ(client.get("/").status, 0);
  ::unlink(name);
}

// ---- What is wrong

struct Refused {
  std::string text;
  int status;
};

TEST(HttpServer, RefusesWhatIsNotARequestAndEndsTheConnection) {
  const std::vector<Refused> cases = {
      {"nonsense\r\n\r\n", 400},
      {"\r\n\r\n", 400},
      {"GET /\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},  // No Host.
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505},
      {"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n", 400},
      {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", 501},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400},
      {request("PUT /", "Content-Length: 3\r\nContent-Length: 3\r\n") + "abc", 400},
      {request("PUT /", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + "abc", 400},
      {request("PUT /", "Content-Length: 3, 3\r\n") + "abc", 400},
      {request("PUT /", "Content-Length: +3\r\n") + "abc", 400},
      {request("PUT /", "Content-Length: -1\r\n"), 400},
      {request("PUT /", "Content-Length: 99999999999999999999\r\n"), 400},
      {request("PUT /", "Content-Length: 1048577\r\n"), 413},
      {request("PUT /", "Transfer-Encoding: gzip, chunked\r\n"), 501},
      {request("PUT /", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), 501},
      {request("PUT /", "Transfer-Encoding: chunked\r\n") + "x\r\n", 400},
      {request("PUT /", "Transfer-Encoding: chunked\r\n") + "1\r\nab\r\n", 400},
      {request("PUT /", "Transfer-Encoding: chunked\r\n") + "1\nab\n", 400},
      {request("PUT /", "Expect: a miracle\r\n"), 417},
      {"PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {request("GET /", "X: " + std::string(40'000, 'x') + "\r\n"), 431},
  };
  ServerFixture fixture;
  for (const Refused& refused : cases) {
    RawClient client = fixture.client();
    const auto answer = client.ask(refused.text);
    EXPECT_EQ(answer.status, refused.status) << refused.text.substr(0, 100);
    EXPECT_FALSE(answer.keep_alive);
    EXPECT_TRUE(answer.body.starts_with("{\"error\":{\"code\":\"")) << answer.body;
    EXPECT_TRUE(client.ended());
  }
}

TEST(HttpServer, RefusesTooManyHeadersAndTooMuchInChunks) {
  ServerFixture fixture;
  std::string headers;
  for (int i = 0; i < 300; ++i)
    headers += "X: y\r\n";
  EXPECT_EQ(fixture.client().ask(request("GET /", headers)).status, 431);
  std::string chunks;
  for (int i = 0; i < 17; ++i)
    chunks += "10000\r\n" + std::string(65536, 'x') + "\r\n";
  RawClient client = fixture.client();
  client.send(request("PUT /", "Transfer-Encoding: chunked\r\n") + chunks);
  EXPECT_EQ(client.receive().status, 413);
}

TEST(HttpServer, TurnsFailuresOfTheHandlerIntoAnswers) {
  ServerFixture fixture([](HttpCall call, Completion<HttpAnswer> done) {
    if (call.request.path == "/lost") return;  // The completion is destroyed unanswered.
    done.complete(failure(StatusCode::kNotFound, "no \"such\" thing"));
  });
  RawClient client = fixture.client();
  const auto missing = client.get("/x");
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.body,
            "{\"error\":{\"code\":\"not_found\",\"message\":\"no \\\"such\\\" thing\"}}\n");
  EXPECT_TRUE(missing.keep_alive);
  EXPECT_EQ(client.get("/lost").status, 500);
}

TEST(HttpServer, LeavesOutHeadersThatWouldEndTheHead) {
  ServerFixture fixture([](HttpCall, Completion<HttpAnswer> done) {
    HttpAnswer answer = text_answer(200, "text/plain", "ok");
    answer.headers.push_back({"X-Name", "a\r\nX-Injected: 1"});
    done.complete(std::move(answer));
  });
  const auto answer = fixture.client().get("/");
  EXPECT_EQ(answer.status, 200);
  EXPECT_FALSE(answer.headers.has("X-Injected"));
}

// ---- Clients that are slow, many or gone

TEST(HttpServer, EndsConnectionsThatRestOrSendTooSlowly) {
  HttpServerOptions options;
  options.idle_timeout = std::chrono::milliseconds(50);
  options.request_timeout = std::chrono::milliseconds(50);
  ServerFixture fixture(echo, options);
  RawClient resting = fixture.client();
  EXPECT_TRUE(resting.ended());
  RawClient slow = fixture.client();
  const auto answer = slow.ask("GET / HTTP/1.1\r\nHos");
  EXPECT_EQ(answer.status, 408);
  EXPECT_TRUE(slow.ended());
}

TEST(HttpServer, EndsConnectionsWhoseClientDoesNotRead) {
  HttpServerOptions options;
  options.send_timeout = std::chrono::milliseconds(50);
  Waiter<bool> cancelled;
  const auto stream = std::make_shared<PiecedStream>(1'000, 1'000'000, std::nullopt);
  ServerFixture fixture(
      [&cancelled, stream](HttpCall call, Completion<HttpAnswer> done) {
        call.context.cancellation().subscribe(
            [answer = cancelled.completion()]() mutable { answer.complete(true); });
        done.complete(HttpAnswer{.status = 200, .headers = {}, .body = stream});
      },
      options);
  RawClient client = fixture.client();
  ASSERT_TRUE(client.send(request("GET /")));
  EXPECT_TRUE(cancelled.wait());
}

TEST(HttpServer, TurnsAwayWhoComesWhenAllConnectionsAreTaken) {
  HttpServerOptions options;
  options.connections_max = 3;
  ServerFixture fixture(echo, options);
  std::array<RawClient, 3> taken = {fixture.client(), fixture.client(), fixture.client()};
  for (RawClient& client : taken)
    EXPECT_EQ(client.get("/").status, 200);
  RawClient late = fixture.client();
  EXPECT_EQ(late.receive().status, 503);
  EXPECT_TRUE(late.ended());
  for (RawClient& client : taken)
    EXPECT_EQ(client.get("/").status, 200);
}

TEST(HttpServer, ServesManyConnectionsAtOnce) {
  ServerFixture fixture;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i)
    clients.push_back(fixture.client());
  for (RawClient& client : clients)
    ASSERT_TRUE(client.send(request("GET /")));
  for (RawClient& client : clients)
    EXPECT_EQ(client.receive().status, 200);
}

TEST(HttpServer, CallsOffWhatAClientThatHasGoneWaitsFor) {
  Waiter<bool> cancelled;
  Waiter<bool> begun;
  ServerFixture fixture([&](HttpCall call, Completion<HttpAnswer> done) {
    begun.completion().complete(true);
    // A long poll: answered only when the client goes, and then to nobody.
    call.context.cancellation().subscribe(
        [answer = std::move(done), told = cancelled.completion()]() mutable {
          told.complete(true);
          answer.complete(text_answer(200, "text/plain", "late"));
        });
  });
  RawClient client = fixture.client();
  ASSERT_TRUE(client.send(request("GET /")));
  ASSERT_TRUE(begun.wait());
  client.close();
  EXPECT_TRUE(cancelled.wait());
}

TEST(HttpServer, RefusesCallsThatTheWorkersCannotTake) {
  Gate release;
  auto held = release.enter();
  const auto wait = [&release](HttpCall, Completion<HttpAnswer> done) {
    release.close();
    done.complete(text_answer(200, "text/plain", "ok"));
  };
  ServerFixture fixture(wait, {}, 64);
  // At most 4 run and 64 wait; the rest is refused.
  std::vector<RawClient> clients;
  for (int i = 0; i < 80; ++i) {
    clients.push_back(fixture.client());
    ASSERT_TRUE(clients.back().send(request("GET /")));
  }
  // These are answered while all others wait. Which ones is for the server's loop to say.
  std::vector<pollfd> answered;
  for (const RawClient& client : clients)
    answered.push_back({.fd = client.descriptor(), .events = POLLIN, .revents = 0});
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (80 - std::ranges::count(answered, 0, &pollfd::revents) < 80 - 68 &&
         std::chrono::steady_clock::now() < deadline) {
    ::poll(answered.data(), answered.size(), 1'000);
    std::this_thread::yield();
  }
  held.reset();
  int refused = 0;
  for (RawClient& client : clients) {
    if (client.receive().status == 503) ++refused;
  }
  EXPECT_GE(refused, 80 - 68);
  EXPECT_LE(refused, 80 - 64);
}

// ---- Stopping

TEST(HttpServer, LetsCallsEndBeforeItStopsAndNobodyElseIn) {
  Waiter<Completion<HttpAnswer>*> begun;
  Completion<HttpAnswer> owed;
  ServerFixture fixture([&](HttpCall, Completion<HttpAnswer> done) {
    owed = std::move(done);
    begun.completion().complete(&owed);
  });
  RawClient resting = fixture.client();
  RawClient waiting = fixture.client();
  ASSERT_TRUE(waiting.send(request("GET /")));
  ASSERT_TRUE(begun.wait());
  std::thread stopper(
      [&] { fixture.server().stop(system_clock().now() + std::chrono::seconds(60)); });
  EXPECT_TRUE(resting.ended());
  EXPECT_FALSE(std::filesystem::exists(fixture.path()));
  owed.complete(text_answer(200, "text/plain", "done"));
  const auto answer = waiting.receive();
  EXPECT_EQ(answer.body, "done");
  EXPECT_FALSE(answer.keep_alive);
  waiting.close();
  stopper.join();
}

TEST(HttpServer, CallsOffWhatHasNotEndedByTheDeadline) {
  Waiter<bool> begun;
  ServerFixture fixture([&](HttpCall call, Completion<HttpAnswer> done) {
    call.context.cancellation().subscribe([answer = std::move(done)]() mutable {
      answer.complete(failure(StatusCode::kCancelled, "called off"));
    });
    begun.completion().complete(true);
  });
  RawClient client = fixture.client();
  ASSERT_TRUE(client.send(request("GET /")));
  ASSERT_TRUE(begun.wait());
  fixture.server().stop(system_clock().now());
  EXPECT_TRUE(client.ended());
}

}  // namespace
}  // namespace millrace
