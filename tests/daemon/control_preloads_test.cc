// Preloads, the cache by versions and usage as clients of the control interface see them.
#include <latch>

#include <gtest/gtest.h>

#include "tests/daemon/daemon_world.h"

namespace millrace {
namespace {

class ControlPreloadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(world_.start().ok());
    world_.tree().write("train/a.bin", std::string(5 * kMiB, 'a'));
    world_.tree().write("val/b.bin", std::string(5 * kMiB, 'b'));
    world_.publish("pets@v1");
  }
  Json post(const std::string& path, const Json& body) {
    const RawClient::Answer answer = world_.ask("POST", path, body.dump());
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }

  DaemonWorld world_;
};

TEST_F(ControlPreloadsTest, FromTheAskingToTheGate) {
  const Json started = post("/v1/preloads", {{"version", "pets@v1"}, {"lease_seconds", 3600}});
  const std::string id = started.value("preload", "");
  EXPECT_EQ(started["fit"]["short_bytes"], 0);
  const Json ready = world_.document("/v1/preloads/" + id + "?wait=1m");
  EXPECT_EQ(ready["state"], "ready");
  EXPECT_EQ(ready["bytes_done"], ready["bytes_total"]);
  EXPECT_TRUE(ready["leased_until"].is_string());
  EXPECT_TRUE(ready["holder"].get<std::string>().starts_with("uid:"));

  const Json cached = world_.document("/v1/cache/versions")["versions"][0];
  EXPECT_EQ(cached["version"], "pets@v1");
  EXPECT_EQ(cached["cached_bytes"], cached["total_bytes"]);
  EXPECT_EQ(cached["leased_until"], ready["leased_until"]);
  EXPECT_GT(post("/v1/cache/verify", {{"version", "pets@v1"}})["bytes"], 10 * kMiB - 1);
  EXPECT_EQ(world_.ask("DELETE", "/v1/cache/versions/pets/v1").status, 409);

  const Json usage = world_.document("/v1/usage?by=version")["usage"][0];
  EXPECT_EQ(usage["fetched_bytes"], ready["bytes_total"]);
  ASSERT_TRUE(world_.gateway().usage().save().ok());
  EXPECT_NE(
      world_.get("/metrics").body.find("millrace_version_fetched_bytes_total{version=\"pets@v1"),
      std::string::npos);

  EXPECT_EQ(world_.ask("DELETE", "/v1/preloads/" + id).status, 200);
  const RawClient::Answer dropped = world_.ask("DELETE", "/v1/cache/versions/pets/v1");
  EXPECT_EQ(dropped.status, 200) << dropped.body;
  EXPECT_EQ(world_.document("/v1/cache/versions")["versions"].size(), 0U);
}

TEST_F(ControlPreloadsTest, TheGateAnswersWhateverElseTakesLong) {
  const std::string id = post("/v1/preloads", {{"version", "pets@v1"}}).value("preload", "");
  // Shared, because those that have no thread yet look at it when the test is over.
  const auto release = std::make_shared<std::latch>(1);
  // More than there are threads for any of them.
  for (int n = 0; n < 16; ++n) {
    world_.gateway().long_requests().resume([release] { release->wait(); });
    world_.gateway().preload_starts().resume([release] { release->wait(); });
  }
  EXPECT_EQ(world_.document("/v1/preloads/" + id + "?wait=1m")["state"], "ready");
  release->count_down();
}

TEST_F(ControlPreloadsTest, GoesOnInTheNextDaemon) {
  const Json slow = post("/v1/preloads", {{"version", "pets@v1"}, {"bytes_per_second_max", 1}});
  const std::string id = slow.value("preload", "");
  // At one byte a second the second file waits for days.
  EXPECT_FALSE(world_.document("/v1/preloads/" + id + "?wait=10ms")["ended"].is_string());
  world_.stop();
  ASSERT_TRUE(world_.start().ok());
  const std::string state = world_.document("/v1/preloads/" + id).value("state", "");
  EXPECT_TRUE(state == "queued" || state == "running") << state;
  EXPECT_EQ(world_.ask("DELETE", "/v1/preloads/" + id).status, 200);
  EXPECT_EQ(world_.document("/v1/preloads/" + id)["state"], "cancelled");
}

}  // namespace
}  // namespace millrace
