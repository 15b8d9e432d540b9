#include "tests/servers/ceph_server.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/servers/nginx_server.h"
#include "tests/servers/signed_request.h"

namespace millrace::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr int kCurlCouldNotConnect = 7;

std::string object_url(const CephServer& server, std::string_view key) {
  return fmt::format("{}/{}/{}", server.endpoint(), CephServer::kSharedBucket, key);
}

template <typename Condition>
bool eventually(Condition condition, std::chrono::seconds limit = std::chrono::seconds(20)) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

pid_t pid_in(const std::string& file) {
  pid_t pid = 0;
  std::ifstream(file) >> pid;
  return pid;
}

// A zombie that nobody has reaped yet no longer runs.
bool runs(pid_t pid) {
  std::ifstream in(fmt::format("/proc/{}/stat", pid));
  std::string stat;
  std::getline(in, stat);
  const auto name_end = stat.rfind(") ");
  return name_end != std::string::npos && stat[name_end + 2] != 'Z' && stat[name_end + 2] != 'X';
}

TEST(CephServerTest, StoresWhatASignedClientPuts) {
  CephServer& server = CephServer::shared();
  const std::string body(100'000, 'x');
  EXPECT_EQ(send_signed({.method = "PUT", .url = object_url(server, "a/b"), .body = body}).status,
            200);
  const SignedAnswer got = send_signed({.url = object_url(server, "a/b")});
  EXPECT_EQ(got.status, 200) << got.error;
  EXPECT_EQ(got.body, body);
}

TEST(CephServerTest, RefusesAWrongSecret) {
  const SignedAnswer answer =
      send_signed({.url = object_url(CephServer::shared(), "a/b"), .secret_key = "wrong"});
  EXPECT_EQ(answer.status, 403);
  EXPECT_THAT(answer.body, HasSubstr("SignatureDoesNotMatch"));
}

TEST(CephServerTest, AnswersSlowDownBeyondTheRequestLimit) {
  CephServer& server = CephServer::shared();
  server.set_max_concurrent_requests(1);
  std::atomic<int> slowed = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      // Until somebody was slowed down: how often requests meet depends on the scheduler.
      for (int i = 0; i < 200 && slowed == 0; ++i) {
        const SignedAnswer answer = send_signed({.url = object_url(server, "slow")});
        if (answer.status == 503 && answer.body.find("SlowDown") != std::string::npos) ++slowed;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  server.set_max_concurrent_requests(CephServer::kDefaultMaxConcurrentRequests);
  EXPECT_GT(slowed, 0);
  EXPECT_EQ(send_signed({.url = object_url(server, "slow")}).status, 404);
}

TEST(CephServerTest, KeepsObjectsWhenTheGatewayIsKilled) {
  CephServer& server = CephServer::shared();
  const std::string url = object_url(server, "survivor");
  ASSERT_EQ(send_signed({.method = "PUT", .url = url, .body = "still here"}).status, 200);
  server.kill_gateway();
  EXPECT_EQ(send_signed({.url = url}).curl_code, kCurlCouldNotConnect);
  server.restart_gateway();
  EXPECT_EQ(send_signed({.url = url}).body, "still here");
}

TEST(CephServerTest, ServesHttpsBesideOtherClusters) {
  CephServer server({.tls = true});
  EXPECT_NE(server.endpoint(), CephServer::shared().endpoint());
  server.create_bucket("secure");
  server.create_bucket("secure");  // A bucket that exists is left alone.
  const std::string url = server.tls_endpoint() + "/secure/key";
  const SignedAnswer put =
      send_signed({.method = "PUT", .url = url, .body = "secret", .ca_file = server.ca_file()});
  EXPECT_EQ(put.status, 200) << put.error;
  EXPECT_NE(send_signed({.url = url}).curl_code, 0)
      << "the certificate is our own, not a public one";
}

TEST(CephServerTest, LeavesNothingBehind) {
  std::string directory;
  std::vector<pid_t> pids;
  {
    const CephServer server;
    directory = server.directory();
    for (const char* name : {"mon", "osd", "rgw", "watchdog"}) {
      pids.push_back(pid_in(fmt::format("{}/{}.pid", directory, name)));
      EXPECT_TRUE(runs(pids.back())) << name;
    }
  }
  EXPECT_FALSE(fs::exists(directory));
  for (const pid_t pid : pids)
    EXPECT_FALSE(runs(pid)) << pid;
}

TEST(CephServerTest, DiesWithAKilledOwner) {
  std::array<int, 2> to_us{};
  ASSERT_EQ(pipe(to_us.data()), 0);
  const pid_t owner = fork();
  ASSERT_GE(owner, 0);
  if (owner == 0) {
    const CephServer server;
    const std::string& directory = server.directory();
    (void)!write(to_us[1], directory.data(), directory.size());
    pause();
  }
  std::array<char, 256> buffer{};
  const ssize_t length = read(to_us[0], buffer.data(), buffer.size());
  ASSERT_GT(length, 0);
  const std::string directory(buffer.data(), static_cast<std::size_t>(length));
  const pid_t gateway = pid_in(directory + "/rgw.pid");
  EXPECT_TRUE(runs(gateway));
  ASSERT_EQ(kill(owner, SIGKILL), 0);
  ASSERT_EQ(waitpid(owner, nullptr, 0), owner);
  EXPECT_TRUE(eventually([&] { return !runs(gateway) && !fs::exists(directory); }));
  close(to_us[0]);
  close(to_us[1]);
}

TEST(CephServerTest, AForkedChildThatExitsDoesNotStopIt) {
  CephServer& server = CephServer::shared();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) exit(0);  // Runs the destructors of statics, the shared server's too.
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_EQ(send_signed({.url = object_url(server, "absent")}).status, 404);
}

TEST(NginxServerTest, ServesRangesOfADirectory) {
  std::string root = "/tmp/millrace-root-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  fs::create_directory(root + "/bucket");
  std::ofstream(root + "/bucket/key") << "0123456789";
  {
    const NginxServer server(root, {.workers = 2});
    const SignedAnswer part =
        send_signed({.url = server.endpoint() + "/bucket/key", .headers = {"Range: bytes=2-4"}});
    EXPECT_EQ(part.status, 206) << part.error;
    EXPECT_EQ(part.body, "234");
    EXPECT_EQ(part.headers.at("content-range"), "bytes 2-4/10");
    EXPECT_EQ(send_signed({.url = server.endpoint() + "/bucket/none"}).status, 404);
  }
  EXPECT_TRUE(fs::exists(root + "/bucket/key"));
  fs::remove_all(root);
}

TEST(NginxServerTest, SaysWhatIsWrongWithTheDirectory) {
  EXPECT_THROW(NginxServer("/nonexistent"), std::runtime_error);
}

}  // namespace
}  // namespace millrace::testing
