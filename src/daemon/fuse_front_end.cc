#include "daemon/fuse_front_end.h"

#include <utility>

#include <fmt/format.h>

#include "daemon/control_body.h"
#include "daemon/control_routes.h"
#include "daemon/gateway.h"
#include "daemon/tree_path.h"
#include "frontends/fuse/fuse_passthrough.h"
#include "frontends/fuse/mount_directory.h"
#include "frontends/fuse/mount_facts.h"
#include "platform/listening_socket.h"
#include "platform/path.h"

namespace millrace {
namespace {

Json mount_document(const FuseMountInfo& mount) {
  const Status passthrough = passthrough_support();
  return {{"path", mount.path},
          {"directory", mount.directory},
          {"device_number", mount.number},
          {"opening", fuse_opening_name(mount.opening)},
          {"immutable", mount.is_immutable},
          {"passthrough_missing", passthrough.ok() ? Json() : Json(passthrough.message())},
          {"passthrough_opens", mount.passthrough_opens},
          {"passthrough_files", mount.passthrough_files}};
}

std::string keeper_socket(const Settings& settings) {
  return join_path(settings.cache, "keeper.sock");
}

}  // namespace

Status check_mount_settings(const Settings& settings) {
  const Status path = check_unix_path(keeper_socket(settings));
  if (path.ok()) return {};
  return {path.code(),
          fmt::format("nothing can be mounted with this 'cache', since its keeper needs "
                      "a socket there: {}; set a shorter one",
                      path.message())};
}

void FuseFrontEnd::add_routes(ControlRoutes& routes) {
  routes.add(HttpMethod::kGet, "/v1/mounts", [this](const ControlRequest&) { return list(); });
  routes.add_asking(HttpMethod::kPost, "/v1/mounts",
                    [this](const ControlRequest& request) { return mount(request); });
  routes.add(HttpMethod::kDelete, "/v1/mounts/{directory}?lazy",
             [this](const ControlRequest& request) { return unmount(request); });
}

Status FuseFrontEnd::start(Gateway& gateway) {
  gateway_ = &gateway;
  mounts_ = std::make_unique<FuseMounts>(
      FuseMounts::Parts{.files = gateway.files(),
                        .clock = gateway.clock(),
                        .late_answers = gateway.late_answers(),
                        .metrics = gateway.metrics(),
                        .timeout = gateway.settings().timeout,
                        .keeper_socket = keeper_socket(gateway.settings()),
                        .restart = restart_});
  return mounts_->take_over();
}

void FuseFrontEnd::stop(TimePoint deadline) {
  if (mounts_) mounts_->stop(deadline);
}

// The kernel could be told to forget names instead (FUSE_NOTIFY_INVAL_ENTRY). But that waits, where
// not even SIGKILL ends it, for the lock of the directory, which whoever just looks something up
// there holds until we have answered: others could not begin to look things up meanwhile, and a
// daemon that is killed then would neither go nor be replaced.
Duration FuseFrontEnd::believed_for() {
  // The kernel counts in ticks, and an answer of before may just be on its way to it.
  constexpr Duration kTicks = std::chrono::milliseconds(50);
  return mounts_ && mounts_->any_changes() ? kNameLifetime + kTicks : Duration::zero();
}

Json FuseFrontEnd::status() { return {{"mounts", mounts_->list().size()}}; }

Result<Json> FuseFrontEnd::list() {
  Json mounts = Json::array();
  for (const FuseMountInfo& mount : mounts_->list())
    mounts.push_back(mount_document(mount));
  return Json{{"mounts", std::move(mounts)}};
}

Result<Json> FuseFrontEnd::mount(const ControlRequest& request) {
  MR_RETURN_IF_ERROR(check_mount_settings(gateway_->settings()));
  FuseMountPlan plan;
  ControlBody body(request.body);
  const std::string source = body.text("source").value_or("");
  plan.directory = body.text("directory").value_or("");
  plan.allow_other = body.flag("allow_other");
  plan.noexec = body.flag("noexec");
  plan.unless_mounted = body.flag("unless_mounted");
  const std::string opening = body.text("opening").value_or("auto");
  MR_RETURN_IF_ERROR(body.status());
  if (opening != "auto") {
    MR_ASSIGN_OR_RETURN(plan.opening, parse_fuse_opening(opening));
  }
  if (!plan.directory.starts_with('/')) {
    return failure(StatusCode::kInvalidArgument, "'directory' is not an absolute path");
  }
  plan.directory = mount_directory(plan.directory).value_or(plan.directory);
  MR_RETURN_IF_ERROR(check_mount_text(plan.directory));
  MR_ASSIGN_OR_RETURN(plan.path, tree_path(request.context, *gateway_, source));
  MR_ASSIGN_OR_RETURN(const FuseMountInfo mounted, mounts_->mount(request.context, plan));
  Json document = mount_document(mounted);
  document["was_there"] = mounted.was_there;
  return document;
}

Result<Json> FuseFrontEnd::unmount(const ControlRequest& request) {
  const std::string& directory = request.parameter("directory");
  MR_ASSIGN_OR_RETURN(const bool lazy, request.queried_flag("lazy"));
  MR_RETURN_IF_ERROR(mounts_->unmount(mount_directory(directory).value_or(directory), lazy));
  return Json(nullptr);
}

}  // namespace millrace
