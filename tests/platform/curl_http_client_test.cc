#include "platform/curl_http_client.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "base/buffer_pool.h"
#include "base/thread_pool.h"
#include "tests/servers/http_server.h"
#include "tests/servers/test_tls.h"

namespace millrace {
namespace {

using testing::HttpServer;
using Served = testing::HttpResponse;
using Asked = testing::HttpRequest;
using std::chrono::milliseconds;
using std::chrono::seconds;

RequestContext within(Duration time) { return {system_clock().now() + time, "test"}; }

HttpRequest get(const std::string& url) {
  HttpRequest request;
  request.url = url;
  return request;
}

Served answer(std::string body) {
  Served served;
  served.body = std::move(body);
  return served;
}

std::string pattern(std::size_t size) {
  std::string text(size, 0);
  for (std::size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>((i * 131) >> 3);
  return text;
}

TEST(CurlHttpClient, BringsStatusHeadersAndBody) {
  HttpServer server([](const Asked& asked) {
    Served served = answer("hello " + asked.method);
    served.status = 418;
    served.headers.add("X-Thing", "  spaced value ");
    return served;
  });
  CurlHttpClient client;
  const auto response = client.perform(within(seconds(10)), get(server.url() + "/a"));
  ASSERT_TRUE(response.has_value()) << response.error().to_string();
  EXPECT_EQ(response->status, 418);
  EXPECT_EQ(response->headers.get("x-thing"), "spaced value");
  EXPECT_EQ(response->body.text(), "hello GET");
}

TEST(CurlHttpClient, SendsMethodsHeadersAndBodiesAsGiven) {
  HttpServer server([](const Asked& asked) {
    Served served = answer(asked.method + "|" + asked.target + "|" + asked.headers.get("x-a") +
                           "|" + asked.body);
    served.headers.add("X-Expect", asked.headers.has("expect") ? "yes" : "no");
    return served;
  });
  CurlHttpClient client;
  // One after the other on the same handle and connection: no trace of one may show in the next.
  const std::string large = pattern(3 * kMiB);
  struct Case {
    HttpMethod method;
    std::string body;
  };
  for (const Case& c :
       {Case{HttpMethod::kPut, large}, Case{HttpMethod::kGet, ""}, Case{HttpMethod::kPost, "xml"},
        Case{HttpMethod::kDelete, ""}, Case{HttpMethod::kPut, ""}, Case{HttpMethod::kGet, ""}}) {
    HttpRequest request = get(server.url() + "/a//b/../c%2F?x=1&y=");
    request.method = c.method;
    request.headers.push_back({"x-a", "v"});
    request.body = Slice::copy_of(c.body);
    request.response_bytes_max = 4 * kMiB;
    const auto response = client.perform(within(seconds(10)), std::move(request));
    ASSERT_TRUE(response.has_value()) << response.error().to_string();
    EXPECT_EQ(response->headers.get("x-expect"), "no");
    EXPECT_EQ(response->body.text(),
              std::string(http_method_name(c.method)) + "|/a//b/../c%2F?x=1&y=|v|" + c.body);
  }
  HttpRequest head = get(server.url());
  head.method = HttpMethod::kHead;
  const auto response = client.perform(within(seconds(10)), std::move(head));
  ASSERT_TRUE(response.has_value()) << response.error().to_string();
  EXPECT_TRUE(response->body.empty());
  EXPECT_EQ(client.connections_opened(), 1U);
}

TEST(CurlHttpClient, ReusesConnectionsUnlessToldNotTo) {
  HttpServer server([](const Asked&) { return answer("x"); });
  CurlHttpClient client;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(client.perform(within(seconds(10)), get(server.url())).has_value());
  }
  EXPECT_EQ(server.connections_accepted(), 1U);
  HttpRequest request = get(server.url());
  request.fresh_connection = true;
  ASSERT_TRUE(client.perform(within(seconds(10)), std::move(request)).has_value());
  EXPECT_EQ(server.connections_accepted(), 2U);
}

TEST(CurlHttpClient, CarriesManyRequestsAtOnce) {
  const std::string body = pattern(100'000);
  HttpServer server([&](const Asked&) { return answer(body); });
  CurlHttpClient client({.loops = 2});
  constexpr int kRequests = 2000;
  std::atomic<int> good = 0;
  std::latch all(kRequests);
  ThreadPool pool({.name = "answers", .threads = 2});
  for (int i = 0; i < kRequests; ++i) {
    client.send(within(seconds(60)), get(server.url() + "/" + std::to_string(i)),
                Completion<HttpResponse>(pool, [&](Result<HttpResponse> response) {
                  if (response && response->body.text() == body) ++good;
                  all.count_down();
                }));
  }
  all.wait();
  EXPECT_EQ(good, kRequests);
}

TEST(CurlHttpClient, PutsBodiesIntoThePoolAndReportsItsCeiling) {
  const std::string body = pattern(300'000);
  HttpServer server([&](const Asked&) { return answer(body); });
  CurlHttpClient client;
  BufferPool pool({.bytes_max = 600'000, .idle_bytes_max = 0});
  HttpRequest request = get(server.url());
  request.pool = &pool;
  auto first = client.perform(within(seconds(10)), request);
  ASSERT_TRUE(first.has_value()) << first.error().to_string();
  EXPECT_EQ(first->body.text(), body);
  EXPECT_GE(pool.bytes_in_use(), body.size());
  const auto second = client.perform(within(seconds(10)), request);
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), StatusCode::kResourceExhausted);
  first = failure(StatusCode::kCancelled, "");
  EXPECT_EQ(pool.bytes_in_use(), 0U);
  EXPECT_TRUE(client.perform(within(seconds(10)), request).has_value());
}

TEST(CurlHttpClient, RefusesAnswersLongerThanAskedFor) {
  HttpServer server([](const Asked& asked) {
    Served served = answer(pattern(200'000));
    served.chunked = asked.path == "/chunked";
    return served;
  });
  CurlHttpClient client;
  for (const char* path : {"/plain", "/chunked"}) {
    HttpRequest request = get(server.url() + path);
    request.response_bytes_max = 100'000;
    const auto response = client.perform(within(seconds(10)), std::move(request));
    ASSERT_FALSE(response.has_value()) << path;
    EXPECT_EQ(response.error().code(), StatusCode::kInternal) << path;
  }
  HttpRequest request = get(server.url() + "/chunked");
  request.response_bytes_max = 200'000;
  const auto response = client.perform(within(seconds(10)), std::move(request));
  ASSERT_TRUE(response.has_value()) << response.error().to_string();
  EXPECT_EQ(response->body.size(), 200'000U);
}

TEST(CurlHttpClient, ACutAnswerIsAFailureNotAShortBody) {
  HttpServer server([](const Asked& asked) {
    Served served = answer(pattern(100'000));
    if (asked.path == "/fin") served.close_after_bytes = 5000;
    if (asked.path == "/reset") served.reset_after_bytes = 5000;
    if (asked.path == "/drop") served.drop_connection = true;
    if (asked.path == "/chunked") {
      served.chunked = true;
      served.close_after_bytes = 5000;
    }
    return served;
  });
  CurlHttpClient client;
  for (const char* path : {"/fin", "/reset", "/drop", "/chunked"}) {
    const auto response = client.perform(within(seconds(10)), get(server.url() + path));
    ASSERT_FALSE(response.has_value()) << path;
    EXPECT_EQ(response.error().code(), StatusCode::kUnavailable) << path;
  }
}

TEST(CurlHttpClient, BytesBeyondTheDeclaredLengthDoNotReachTheNextAnswer) {
  std::atomic<int> served_count = 0;
  HttpServer server([&](const Asked&) {
    Served served = answer(served_count++ == 0 ? "0123456789HTTP/1.1 200 OK" : "second");
    if (served_count == 1) served.declared_length = 10;
    return served;
  });
  CurlHttpClient client;
  const auto first = client.perform(within(seconds(10)), get(server.url()));
  if (first.has_value()) {
    EXPECT_EQ(first->body.text(), "0123456789");
  }
  const auto second = client.perform(within(seconds(10)), get(server.url()));
  ASSERT_TRUE(second.has_value()) << second.error().to_string();
  EXPECT_EQ(second->body.text(), "second");
}

TEST(CurlHttpClient, EndsByTheDeadline) {
  HttpServer server([](const Asked&) {
    Served served = answer("late");
    served.delay_before = seconds(30);
    return served;
  });
  CurlHttpClient client;
  const auto response = client.perform(within(milliseconds(100)), get(server.url()));
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), StatusCode::kDeadlineExceeded);
  const auto already = client.perform(within(-seconds(1)), get(server.url()));
  ASSERT_FALSE(already.has_value());
  EXPECT_EQ(already.error().code(), StatusCode::kDeadlineExceeded);
}

TEST(CurlHttpClient, GivesUpOnAServerThatDrips) {
  HttpServer server([](const Asked&) {
    Served served = answer(pattern(100'000));
    served.drip_bytes_per_second = 10;
    return served;
  });
  CurlHttpClient client({.stall_bytes_per_second = 1000, .stall_window = seconds(1)});
  const auto response = client.perform(within(seconds(60)), get(server.url()));
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), StatusCode::kUnavailable);
}

TEST(CurlHttpClient, CancellationEndsARequestAtOnce) {
  std::latch arrived(1);
  HttpServer server([&](const Asked&) {
    arrived.count_down();
    Served served = answer("late");
    served.delay_before = seconds(30);
    return served;
  });
  CurlHttpClient client;
  const RequestContext context = within(seconds(60));
  std::thread canceller([&] {
    arrived.wait();
    context.cancellation().request();
  });
  const auto response = client.perform(context, get(server.url()));
  canceller.join();
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), StatusCode::kCancelled);
  // A context that is cancelled already sends nothing.
  const auto again = client.perform(context, get(server.url()));
  ASSERT_FALSE(again.has_value());
  EXPECT_EQ(again.error().code(), StatusCode::kCancelled);
}

TEST(CurlHttpClient, DestructionAnswersWhatIsInFlight) {
  HttpServer server([](const Asked&) {
    Served served = answer("late");
    served.delay_before = seconds(30);
    return served;
  });
  Waiter<HttpResponse> waiter;
  {
    CurlHttpClient client;
    client.send(within(seconds(60)), get(server.url()), waiter.completion());
  }
  const auto response = waiter.wait();
  ASSERT_FALSE(response.has_value());
  EXPECT_EQ(response.error().code(), StatusCode::kCancelled);
}

TEST(CurlHttpClient, RefusesMoreThanItsLimitInFlight) {
  HttpServer server([](const Asked&) {
    Served served = answer("late");
    served.delay_before = seconds(30);
    return served;
  });
  CurlHttpClient client({.requests_in_flight_max = 1});
  const RequestContext context = within(seconds(60));
  Waiter<HttpResponse> first;
  client.send(context, get(server.url()), first.completion());
  const auto second = client.perform(context, get(server.url()));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code(), StatusCode::kResourceExhausted);
  context.cancellation().request();
  EXPECT_EQ(first.wait().error().code(), StatusCode::kCancelled);
}

TEST(CurlHttpClient, SaysWhatItCouldNotReach) {
  std::uint16_t port = 0;
  {
    HttpServer closed([](const Asked&) { return answer(""); });
    port = closed.port();
  }
  CurlHttpClient client;
  const auto refused =
      client.perform(within(seconds(10)), get("http://127.0.0.1:" + std::to_string(port) + "/x"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kUnavailable);
  EXPECT_NE(refused.error().message().find("127.0.0.1:" + std::to_string(port)), std::string::npos);
  const auto unknown = client.perform(within(seconds(10)), get("http://no-such-host.invalid/x"));
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code(), StatusCode::kUnavailable);
  const auto bad = client.perform(within(seconds(10)), get("nonsense://x"));
  ASSERT_FALSE(bad.has_value());
  EXPECT_EQ(bad.error().code(), StatusCode::kInvalidArgument);
}

TEST(CurlHttpClient, UsesTheProxyOfTheEnvironmentButNotForItsOwnMachine) {
  HttpServer proxy([](const Asked&) { return answer(""); });
  HttpServer server([](const Asked&) { return answer("direct"); });
  ::setenv("http_proxy", proxy.url().c_str(), 1);
  CurlHttpClient client;
  const auto far = client.perform(within(seconds(10)), get("http://store.example/x"));
  const auto near = client.perform(within(seconds(10)), get(server.url()));
  ::unsetenv("http_proxy");
  // This proxy cannot tunnel, but it was asked to.
  EXPECT_FALSE(far.has_value());
  EXPECT_EQ(proxy.connections_accepted(), 1U);
  ASSERT_TRUE(near.has_value()) << near.error().to_string();
  EXPECT_EQ(near->body.text(), "direct");
}

TEST(CurlHttpClient, TrustsOnlyTheGivenCertificates) {
  const auto directory =
      std::filesystem::temp_directory_path() / ("mr-tls-" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  const std::string bundle = directory / "ca.pem";
  testing::HttpServerOptions options;
  const testing::TestTls tls;
  tls.write_ca_bundle(bundle);
  options.tls = tls.server();
  HttpServer server([](const Asked&) { return answer("secret"); }, std::move(options));
  CurlHttpClient client;
  const auto distrusted = client.perform(within(seconds(10)), get(server.url()));
  ASSERT_FALSE(distrusted.has_value());
  EXPECT_EQ(distrusted.error().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(distrusted.error().message().find("ca_bundle"), std::string::npos);
  HttpRequest request = get(server.url());
  request.ca_bundle = bundle;
  const auto trusted = client.perform(within(seconds(10)), std::move(request));
  ASSERT_TRUE(trusted.has_value()) << trusted.error().to_string();
  EXPECT_EQ(trusted->body.text(), "secret");
  // Trust given to one request is not given to the next.
  EXPECT_FALSE(client.perform(within(seconds(10)), get(server.url())).has_value());
  std::filesystem::remove_all(directory);
}

}  // namespace
}  // namespace millrace
