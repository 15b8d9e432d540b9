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

// libcurl takes connections for old, and closes them, after 118 s.
constexpr seconds kLong{170};
constexpr int kAskers = 6;

TEST(CurlHttpClientTorture, NoAnswerReachesAnother) {
  HttpServer server([](const testing::HttpRequest& asked) {
    testing::HttpResponse served;
    served.body = asked.target;
    return served;
  });
  CurlHttpClient client;
  const Duration time = full_torture() ? kLong : seconds(3);
  const TimePoint end = system_clock().now() + time;
  std::atomic<std::uint64_t> requests = 0;
  std::atomic<std::uint64_t> failures = 0;
  const auto ask = [&](int asker, bool fresh) {
    for (std::uint64_t n = 0; system_clock().now() < end; ++n) {
      const std::string target = fmt::format("/{}/{}/{}", asker, fresh ? "fresh" : "kept", n);
      HttpRequest request;
      request.url = server.url() + target;
      request.fresh_connection = fresh;
      const auto answer =
          client.perform({system_clock().now() + seconds(20), "test"}, std::move(request));
      ++requests;
      if (!answer) {
        ++failures;
      } else {
        ASSERT_EQ(answer->body.text(), target);
      }
      // Few are made anew: those that rested last are taken first, so others would never grow old.
      if (fresh) std::this_thread::sleep_for(seconds(2));
    }
  };
  std::vector<std::thread> askers;
  for (int n = 0; n < kAskers; ++n)
    askers.emplace_back(ask, n, n == 0);
  for (std::thread& asker : askers)
    asker.join();
  EXPECT_EQ(failures, 0U) << "of " << requests;
  EXPECT_GT(requests, 100U);
  report_torture("http_client_mixing", 0,
                 fmt::format(R"("requests":{},"failures":{})", requests.load(), failures.load()));
}

}  // namespace
}  // namespace millrace
