#include "daemon/daemon.h"

#include <unistd.h>

#include <algorithm>
#include <ranges>
#include <utility>

#include <fmt/format.h>

#include "app/times.h"
#include "base/log.h"
#include "base/version.h"
#include "daemon/control_resources.h"
#include "platform/listening_socket.h"
#include "platform/process.h"

namespace millrace {
namespace {

// Control requests are short, but for those who wait for something: they ask again.
constexpr Duration kControlDrainMax = std::chrono::seconds(2);

Status with_advice(const Status& status) {
  if (status.code() != StatusCode::kConflict) return status;
  return {
      status.code(),
      fmt::format("{}: use that daemon, end it by 'millrace stop', or give this one --cache and "
                  "--socket of its own",
                  status.message())};
}

Json served_settings(const Settings& settings) {
  Json texts = Json::object();
  for (const SettingSpec& spec : all_settings()) {
    if (spec.served_text != nullptr) texts[std::string(spec.name)] = spec.served_text(settings);
  }
  return texts;
}

}  // namespace

Daemon::Daemon(Application& application, std::unique_ptr<Gateway> gateway, DaemonOptions options)
    : gateway_(std::move(gateway)),
      started_(gateway_->clock().wall_now()),
      on_stop_request_(std::move(options.on_stop_request)),
      settings_(served_settings(application.settings())),
      routes_(gateway_->clock(), gateway_->work(), application.settings().timeout),
      front_ends_(std::move(options.front_ends)),
      store_watch_(std::make_unique<StoreWatch>(gateway_->store(), gateway_->clock())) {
  add_daemon_routes(routes_, *this);
  add_dataset_routes(routes_, *gateway_);
  add_version_routes(routes_, *gateway_);
  add_run_routes(routes_, *gateway_);
  add_cache_routes(routes_, *gateway_);
  add_lease_routes(routes_, *gateway_);
  add_preload_routes(routes_, *gateway_);
  add_usage_routes(routes_, *gateway_);
  for (const auto& front_end : front_ends_)
    front_end->add_routes(routes_);
  server_ = std::make_unique<HttpServer>(gateway_->net(), gateway_->control(), routes_,
                                         HttpServerOptions());
}

Result<std::unique_ptr<Daemon>> Daemon::start(Application& application, DaemonOptions options) {
  // The cache first: whoever has it is who is in the way, and its lock says more.
  Result<std::unique_ptr<Gateway>> opened = Gateway::open(application, options.missing_store);
  if (!opened) return failure(with_advice(opened.error()));
  std::unique_ptr<Gateway> gateway = *std::move(opened);
  MR_ASSIGN_OR_RETURN(ListeningSocket socket,
                      ListeningSocket::unix_socket(application.settings().socket));
  std::unique_ptr<Daemon> daemon(new Daemon(application, std::move(gateway), std::move(options)));
  if (Status started = daemon->start_front_ends(); !started.ok()) {
    // Only with a daemon that was stopped does its path go: whoever waits for the next one after a
    // kill would stop waiting.
    socket.leave_path();
    return failure(std::move(started));
  }
  daemon->server_->listen(std::move(socket));
  log_info("ready", {{"socket", application.settings().socket},
                     {"store", daemon->gateway_->store().describe()},
                     {"cache", application.settings().cache}});
  return daemon;
}

Status Daemon::start_front_ends() {
  for (const auto& front_end : front_ends_) {
    if (Status status = front_end->start(*gateway_); !status.ok()) {
      return status.with_context(front_end->name());
    }
  }
  return {};
}

Daemon::~Daemon() { stop(gateway_->clock().now()); }

void Daemon::stop(TimePoint deadline) {
  if (std::exchange(stopped_, true)) return;
  server_->stop(std::min(deadline, gateway_->clock().now() + kControlDrainMax));
  // Not after the handlers: one may take its time to notice, and mounts must not be left meanwhile.
  for (const auto& front_end : std::views::reverse(front_ends_))
    front_end->stop(deadline);
  server_->join();
  store_watch_.reset();
  log_info("stopped");
}

Duration Daemon::ask_again() {
  gateway_->datasets().ask_again();
  Duration longest{};
  for (const auto& front_end : front_ends_)
    longest = std::max(longest, front_end->believed_for());
  return longest;
}

Json Daemon::status() {
  const StoreWatch::State store = store_state();
  Json front_ends = Json::array();
  for (const auto& front_end : front_ends_) {
    Json document = {{"name", front_end->name()}};
    document.update(front_end->status());
    front_ends.push_back(std::move(document));
  }
  return {{"version", version()},
          {"revision", git_revision()},
          {"pid", ::getpid()},
          {"started", format_time(started_)},
          {"socket", gateway_->settings().socket},
          {"settings", settings_},
          {"store",
           {{"url", gateway_->store().describe()},
            {"asked", store.asked},
            {"answers", store.answers},
            {"since", store.asked ? Json(format_time(store.since)) : Json(nullptr)},
            {"error", store.error.empty() ? Json(nullptr) : Json(store.error)}}},
          {"cache", cache_document(*gateway_)},
          {"memory",
           {{"limit_bytes", gateway_->settings().memory_max_bytes},
            {"buffer_bytes", gateway_->buffers().bytes_in_use()},
            {"idle_bytes", gateway_->buffers().bytes_idle()},
            {"resident_bytes", resident_bytes()}}},
          {"front_ends", std::move(front_ends)}};
}

}  // namespace millrace
