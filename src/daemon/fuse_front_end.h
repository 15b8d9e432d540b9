#pragma once

#include <memory>
#include <string>
#include <vector>

#include "app/settings.h"
#include "daemon/front_end.h"
#include "frontends/fuse/fuse_mounts.h"

namespace millrace {

// Whether a daemon of these settings can mount: kInvalidArgument when the path of its cache leaves
// no room for the keeper's socket. It serves all else then.
Status check_mount_settings(const Settings& settings);

// The mounts of this machine as a front end of the daemon: /v1/mounts, and what a killed daemon has
// left at the start.
class FuseFrontEnd final : public FrontEnd {
 public:
  // `restart` is the command line of this daemon, for the keeper.
  explicit FuseFrontEnd(std::vector<std::string> restart) : restart_(std::move(restart)) {}

  std::string_view name() const override { return "fuse"; }
  void add_routes(ControlRoutes& routes) override;
  Status start(Gateway& gateway) override;
  void stop(TimePoint deadline) override;
  Duration believed_for() override;
  Json status() override;

 private:
  Result<Json> mount(const ControlRequest& request);
  Result<Json> list();
  Result<Json> unmount(const ControlRequest& request);

  const std::vector<std::string> restart_;
  Gateway* gateway_ = nullptr;
  std::unique_ptr<FuseMounts> mounts_;
};

}  // namespace millrace
