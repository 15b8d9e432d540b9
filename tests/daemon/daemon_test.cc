#include "daemon/daemon.h"

#include <atomic>
#include <filesystem>
#include <latch>
#include <memory>
#include <vector>

#include <gmock/gmock.h>

#include "tests/daemon/daemon_world.h"
#include "tests/servers/fault_proxy.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

Result<std::string> read_path(Gateway& gateway, const std::string& path) {
  const RequestContext context = RequestContext::background();
  MR_ASSIGN_OR_RETURN(const NodeAttributes node, gateway.files().resolve(context, path));
  MR_ASSIGN_OR_RETURN(const auto file, gateway.files().open(context, node.number));
  Waiter<Slice> waiter;
  file->read(context, {0, node.size}, waiter.completion());
  MR_ASSIGN_OR_RETURN(const Slice bytes, waiter.wait());
  return std::string(bytes.text());
}

TEST(Daemon, ServesTheFilesOfVersionsAndKeepsTheirNumbers) {
  DaemonWorld world;
  ASSERT_TRUE(world.start().ok());
  world.tree().write("a/b", "hello");
  world.publish("pets/cats@v1");
  EXPECT_EQ(read_path(world.gateway(), "/datasets/pets/cats/v1/a/b").value_or("?"), "hello");
  const auto path = "/datasets/pets/cats/v1/a/b";
  const NodeNumber before = world.gateway().files().resolve(world.context, path)->number;
  world.stop();
  ASSERT_TRUE(world.start().ok());
  EXPECT_EQ(world.gateway().files().resolve(world.context, path)->number, before);
  EXPECT_EQ(read_path(world.gateway(), path).value_or("?"), "hello");
}

TEST(Daemon, TellsAboutDatasetsVersionsAndRuns) {
  DaemonWorld world;
  ASSERT_TRUE(world.start().ok());
  EXPECT_EQ(world.document("/v1/datasets"), Json::parse(R"({"datasets":[]})"));
  world.tree().write("a", "hello");
  world.publish("pets/cats@v1");
  EXPECT_EQ(world.document("/v1/datasets"),
            Json::parse(R"({"datasets":[{"dataset":"pets/cats"}]})"));
  const Json dataset = world.document("/v1/datasets/pets%2Fcats");
  EXPECT_EQ(dataset["versions"][0]["ref"], "pets/cats@v1");
  EXPECT_EQ(dataset["versions"][0]["bytes"], 5);
  EXPECT_EQ(world.document("/v1/versions/pets%2Fcats/v1")["state"], "published");
  EXPECT_EQ(world.get("/v1/versions/pets%2Fcats/v2").status, 404);
  EXPECT_EQ(world.get("/v1/versions/pets%2F%2Fcats/v1").status, 400);
  EXPECT_EQ(world.get("/v1/datasets/pets").status, 404);
  EXPECT_EQ(world.document("/v1/runs")["total"], 0);
  EXPECT_EQ(world.get("/v1/runs?limit=many").status, 400);
}

TEST(Daemon, AnswersForItselfHoweverManyWaitForTheStore) {
  DaemonWorld world;
  ASSERT_TRUE(world.start().ok());
  const auto release = std::make_shared<std::latch>(1);
  for (int n = 0; n < 64; ++n)
    world.gateway().work().resume([release] { release->wait(); });
  std::vector<RawClient> asking;
  for (int n = 0; n < 8; ++n) {
    asking.push_back(world.client());
    asking.back().send("GET /v1/runs HTTP/1.1\r\nHost: test\r\n\r\n");
  }
  EXPECT_EQ(world.get("/healthz").status, 200);
  EXPECT_EQ(world.get("/metrics").status, 200);
  EXPECT_EQ(world.get("/v1/status").status, 200);
  EXPECT_EQ(world.get("/v1/preloads").status, 200);
  EXPECT_EQ(world.ask("POST", "/v1/stop").status, 200);
  release->count_down();
}

TEST(Daemon, StopsItsFrontEndsAlsoWhenAHandlerDoesNotEnd) {
  class Stubborn final : public FrontEnd {
   public:
    explicit Stubborn(std::latch& begun) : begun_(begun) {}
    std::string_view name() const override { return "stubborn"; }
    void add_routes(ControlRoutes& routes) override {
      routes.add_asking(HttpMethod::kGet, "/v1/stubborn",
                        [this](const ControlRequest&) -> Result<Json> {
                          begun_.count_down();
                          stopped_.wait();
                          return Json(nullptr);
                        });
    }
    Status start(Gateway& /*gateway*/) override { return {}; }
    void stop(TimePoint /*deadline*/) override { stopped_.count_down(); }
    Json status() override { return Json::object(); }

   private:
    std::latch& begun_;
    std::latch stopped_{1};
  };
  std::latch begun(1);
  DaemonWorld world;
  DaemonOptions options;
  options.front_ends.push_back(std::make_unique<Stubborn>(begun));
  ASSERT_TRUE(world.start(std::move(options)).ok());
  RawClient client = world.client();
  client.send("GET /v1/stubborn HTTP/1.1\r\nHost: test\r\n\r\n");
  begun.wait();
  world.stop();
}

TEST(Daemon, TellsAboutItselfItsCacheAndItsMetrics) {
  DaemonWorld world({{"cache_size", "256MiB"}, {"memory_max", "128MiB"}});
  ASSERT_TRUE(world.start().ok());
  EXPECT_EQ(world.get("/healthz").status, 200);
  EXPECT_EQ(world.wait_until_ready().body, "{\"ready\":true,\"store_answers\":true}\n");
  const Json status = world.document("/v1/status");
  EXPECT_EQ(status["pid"], ::getpid());
  EXPECT_EQ(status["store"]["answers"], true);
  EXPECT_EQ(status["cache"]["limit_bytes"], 256 * kMiB);
  EXPECT_EQ(status["memory"]["limit_bytes"], 128 * kMiB);
  EXPECT_GT(status["memory"]["resident_bytes"], kMiB);
  const auto metrics = world.get("/metrics");
  EXPECT_EQ(metrics.headers.get("Content-Type"), "text/plain; version=0.0.4");
  EXPECT_THAT(metrics.body, HasSubstr("# TYPE millrace_cache_limit_bytes gauge"));
  EXPECT_EQ(world.get("/v1/nothing").status, 404);
  EXPECT_EQ(world.ask("PUT", "/v1/status").status, 405);
}

TEST(Daemon, EndsLeasesOnRequest) {
  DaemonWorld world;
  ASSERT_TRUE(world.start().ok());
  const ObjectVersion object(world.gateway().store_id(), ObjectKey("k"), ObjectIdentity("i"), 100);
  ASSERT_TRUE(world.gateway()
                  .cache()
                  .leases()
                  .grant(world.context, {.id = LeaseId("job-7"),
                                         .holder = "alice",
                                         .lifetime = std::chrono::hours(1),
                                         .ranges = {{object, {0, 100}}}})
                  .ok());
  const Json leases = world.document("/v1/leases")["leases"];
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases[0]["lease"], "job-7");
  EXPECT_EQ(world.ask("DELETE", "/v1/leases/job-8").status, 404);
  EXPECT_EQ(world.ask("DELETE", "/v1/leases/job-7").status, 204);
  EXPECT_EQ(world.document("/v1/leases")["leases"].size(), 0U);
}

TEST(Daemon, NamesTheOneThatHasTheCache) {
  DaemonWorld world;
  ASSERT_TRUE(world.start().ok());
  Settings second = world.settings();
  second.socket += "2";
  const auto application = Application::start(second, world.environment()).value();
  const auto refused = Daemon::start(*application, {.missing_store = MissingRoot::kCreate});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kConflict);
  EXPECT_THAT(refused.error().message(), HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(refused.error().message(), HasSubstr("since 20"));
  EXPECT_THAT(refused.error().message(), HasSubstr(world.settings().socket));
}

TEST(Daemon, IsNotReadyBeforeItsStoreWasAsked) {
  // Takes requests, and never answers.
  auto store = std::make_unique<testing::FaultProxy>("127.0.0.1", 1);
  store->set_policy([](const testing::ProxiedRequest&) { return testing::Fault::kStall; });
  DaemonWorld world({{"store", "s3://bucket?endpoint=" + store->endpoint() + "&anonymous=true"},
                     {"attempts_max", "1"}});
  // For so long the daemon waits for the answer. Where only asking takes longer, it is done again.
  constexpr Duration kStillAsked = std::chrono::seconds(5);
  RawClient::Answer answer;
  for (int n = 0; n < 10; ++n) {
    world.stop();
    const TimePoint begin = system_clock().now();
    ASSERT_TRUE(world.start().ok());
    answer = world.get("/readyz");
    if (system_clock().now() - begin < kStillAsked) break;
  }
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.body, "{\"ready\":false,\"store_answers\":false}\n");
  EXPECT_EQ(world.get("/healthz").status, 200);
  store.reset();
  EXPECT_EQ(world.wait_until_ready().body, "{\"ready\":true,\"store_answers\":false}\n");
}

TEST(Daemon, StartsWithoutItsStoreAndSaysSo) {
  // Nobody listens on port 1.
  DaemonWorld world(
      {{"store", "s3://bucket?endpoint=http://127.0.0.1:1&anonymous=true"}, {"attempts_max", "1"}});
  const LogCapture log(LogLevel::kWarn);
  ASSERT_TRUE(world.start().ok());
  EXPECT_EQ(world.wait_until_ready().body, "{\"ready\":true,\"store_answers\":false}\n");
  const Json store = world.document("/v1/status")["store"];
  EXPECT_EQ(store["answers"], false);
  EXPECT_TRUE(store["error"].is_string());
  EXPECT_THAT(log.text(), HasSubstr("the store does not answer"));
  EXPECT_EQ(world.get("/v1/datasets").status, 502);
}

TEST(Daemon, KeepsAnEncryptedCacheToItsKey) {
  const ScratchTree keys("/tmp/");
  keys.write("one", std::string(64, 'a'));
  keys.write("two", std::string(64, 'b'));
  keys.set_mode("one", 0600);
  keys.set_mode("two", 0600);
  DaemonWorld world({{"cache_key_file", keys.path("one")}});
  ASSERT_TRUE(world.start().ok());
  world.tree().write("a", "hello");
  world.publish("pets@v1");
  EXPECT_EQ(read_path(world.gateway(), "/datasets/pets/v1/a").value_or("?"), "hello");
  EXPECT_EQ(world.document("/v1/cache")["encrypted"], true);
  Settings other = world.settings();
  world.stop();
  other.cache_key_file = keys.path("two");
  const auto application = Application::start(other, world.environment()).value();
  const auto refused = Daemon::start(*application, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kUnauthenticated);
}

// Remembers what the daemon does with it.
class FakeFrontEnd final : public FrontEnd {
 public:
  FakeFrontEnd(std::string name, std::vector<std::string>& events, Status start_status = {})
      : name_(std::move(name)), events_(events), start_status_(std::move(start_status)) {}
  std::string_view name() const override { return name_; }
  void add_routes(ControlRoutes& routes) override {
    routes.add(HttpMethod::kGet, "/v1/" + name_,
               [](const ControlRequest&) -> Result<Json> { return Json::object(); });
  }
  Status start(Gateway& gateway) override {
    EXPECT_TRUE(gateway.files().resolve(RequestContext::background(), "/datasets"));
    events_.push_back("start " + name_);
    return start_status_;
  }
  void stop(TimePoint) override { events_.push_back("stop " + name_); }
  Json status() override { return {{"mounts", 3}}; }

 private:
  const std::string name_;
  std::vector<std::string>& events_;
  const Status start_status_;
};

DaemonOptions with_front_ends(std::vector<std::string>& events, Status second_start) {
  DaemonOptions options;
  options.front_ends.push_back(std::make_unique<FakeFrontEnd>("one", events));
  options.front_ends.push_back(
      std::make_unique<FakeFrontEnd>("two", events, std::move(second_start)));
  return options;
}

TEST(Daemon, RunsItsFrontEnds) {
  std::vector<std::string> events;
  {
    DaemonWorld world;
    ASSERT_TRUE(world.start(with_front_ends(events, {})).ok());
    EXPECT_EQ(world.get("/v1/one").status, 200);
    EXPECT_EQ(world.document("/v1/status")["front_ends"],
              Json::parse(R"([{"name":"one","mounts":3},{"name":"two","mounts":3}])"));
    world.stop();
  }
  EXPECT_EQ(events, (std::vector<std::string>{"start one", "start two", "stop two", "stop one"}));
}

TEST(Daemon, DoesNotStartWithoutOneOfItsFrontEnds) {
  std::vector<std::string> events;
  DaemonWorld world;
  const Status status =
      world.start(with_front_ends(events, {StatusCode::kUnsupported, "there is no /dev/fuse"}));
  EXPECT_EQ(status.message(), "two: there is no /dev/fuse");
  EXPECT_TRUE(std::filesystem::exists(world.settings().socket)) << "it was not stopped";
  EXPECT_EQ(events, (std::vector<std::string>{"start one", "start two", "stop two", "stop one"}));
  EXPECT_TRUE(world.start().ok()) << "nothing is left of the first try";
}

TEST(Daemon, PassesOnThatItShallEnd) {
  std::atomic<int> asked = 0;
  DaemonWorld world;
  DaemonOptions options;
  options.on_stop_request = [&asked] { ++asked; };
  ASSERT_TRUE(world.start(std::move(options)).ok());
  EXPECT_EQ(world.ask("GET", "/v1/stop").status, 405);
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(world.ask("POST", "/v1/stop").status, 200);
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace millrace
