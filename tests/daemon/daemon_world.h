#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "app/application.h"
#include "daemon/daemon.h"
#include "dataset/directory_source.h"
#include "dataset/publisher.h"
#include "tests/dataset/source_world.h"
#include "tests/frontends/http/raw_client.h"

namespace millrace {

// A machine with a home of its own, whose daemon can be stopped and started again.
class DaemonWorld {
 public:
  explicit DaemonWorld(std::map<std::string, std::string> settings = {})
      : settings_(std::move(settings)) {}

  // A daemon with the defaults, but for what the world was made with.
  Status start(DaemonOptions options = {}) {
    daemon_.reset();
    application_ = Application::start(settings(), environment()).value();
    options.missing_store = MissingRoot::kCreate;
    MR_ASSIGN_OR_RETURN(daemon_, Daemon::start(*application_, std::move(options)));
    return {};
  }
  void stop() {
    if (daemon_) daemon_->stop(system_clock().now() + std::chrono::seconds(30));
    daemon_.reset();
  }

  Settings settings() {
    SettingFlags flags;
    for (const auto& [name, text] : settings_)
      flags.values.emplace_back(name, text);
    const auto loaded = load_settings(flags, environment());
    EXPECT_TRUE(loaded) << (loaded ? "" : loaded.error().to_string());
    return loaded->settings;
  }
  EnvironmentLookup environment() const {
    return [home = home_.root()](const std::string& name) -> std::optional<std::string> {
      if (name == "HOME") return home;
      return std::nullopt;
    };
  }
  Daemon& daemon() { return *daemon_; }
  Gateway& gateway() { return daemon_->gateway(); }
  const ScratchTree& home() const { return home_; }
  // What publish() makes versions of.
  const ScratchTree& tree() const { return tree_; }

  void publish(const std::string& ref) {
    const auto source = DirectorySource::open_root(tree_.root());
    ASSERT_TRUE(source);
    const auto report = millrace::publish(context,
                                          {.store = gateway().store(),
                                           .registry = gateway().registry(),
                                           .buffers = gateway().buffers(),
                                           .clock = system_clock(),
                                           .random = system_random(),
                                           .state_directory = home_.path("publish")},
                                          **source, VersionRef::parse(ref).value(), {});
    ASSERT_TRUE(report) << report.error().to_string();
  }

  RawClient client() { return RawClient(settings().socket); }
  RawClient::Answer get(const std::string& path) { return client().get(path); }
  RawClient::Answer ask(const std::string& method, const std::string& path,
                        const std::string& body = "") {
    const std::string length =
        body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return client().ask(method + " " + path + " HTTP/1.1\r\nHost: test\r\n" + length + "\r\n" +
                        body);
  }
  Json document(const std::string& path) {
    const RawClient::Answer answer = get(path);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return Json::parse(answer.body, nullptr, false);
  }
  // Asks until the daemon knows whether its store answers.
  RawClient::Answer wait_until_ready() {
    const TimePoint deadline = system_clock().now() + std::chrono::seconds(60);
    RawClient::Answer answer = get("/readyz");
    while (answer.status == 503 && system_clock().now() < deadline)
      answer = get("/readyz");
    return answer;
  }

  const RequestContext context = RequestContext::background();

 private:
  const std::map<std::string, std::string> settings_;
  const ScratchTree home_{"/tmp/"};
  const ScratchTree tree_;
  std::unique_ptr<Application> application_;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace millrace
