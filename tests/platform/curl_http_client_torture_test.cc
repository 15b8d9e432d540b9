// Connections that live long, beside ones that come and go: no answer may reach another's asker.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "platform/curl_http_client.h"
#include "tests/servers/http_server.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

using std::chrono::seconds;
using testing::HttpServer;

// libcurl takes connections for old after 118 s, and closes them when it makes another.
constexpr seconds kOld{122};
constexpr int kAskers = 4;
constexpr int kFreshRequests = 20;

TEST(CurlHttpClientTorture, NoAnswerReachesAnother) {
  HttpServer server([](const testing::HttpRequest& asked) {
    testing::HttpResponse served;
    served.body = asked.target;
    return served;
  });
  CurlHttpClient client;
  std::atomic<bool> over = false;
  std::atomic<std::uint64_t> requests = 0;
  const auto ask = [&](const std::string& target, bool fresh) {
    HttpRequest request;
    request.url = server.url() + target;
    request.fresh_connection = fresh;
    const auto answer =
        client.perform({system_clock().now() + seconds(20), "test"}, std::move(request));
    ++requests;
    ASSERT_TRUE(answer) << target << ": " << answer.error().to_string();
    ASSERT_EQ(answer->body.text(), target);
  };
  std::vector<std::thread> askers;
  for (int n = 0; n < kAskers; ++n) {
    askers.emplace_back([&, n] {
      for (int round = 0; !over; ++round) {
        ask(fmt::format("/kept/{}/{}", n, round), false);
        // All of them are in use often enough not to be closed for resting.
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    });
  }
  // While nobody makes a new connection, those in use grow old.
  std::this_thread::sleep_for(full_torture() ? kOld : seconds(1));
  for (int n = 0; n < kFreshRequests; ++n) {
    ask(fmt::format("/fresh/{}", n), true);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  over = true;
  for (std::thread& asker : askers)
    asker.join();
  EXPECT_GT(requests, 100U);
  report_torture("http_client_mixing", 0, fmt::format(R"("requests":{})", requests.load()));
}

}  // namespace
}  // namespace millrace
