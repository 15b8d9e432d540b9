#pragma once

#include <memory>

#include "daemon/front_end.h"
#include "daemon/gateway.h"
#include "frontends/loader/loader_server.h"
#include "service/loader_sources.h"

namespace millrace {

// Where loaders reach the daemon whose control socket this is.
std::string loader_socket(const std::string& control_socket);

// What loaders on a gateway are served from. The gateway outlives it.
std::unique_ptr<LoaderSources> loader_sources(Gateway& gateway);

// Loaders as a front end of the daemon: a socket beside that of the control interface.
class LoaderFrontEnd final : public FrontEnd {
 public:
  std::string_view name() const override { return "loader"; }
  void add_routes(ControlRoutes& routes) override;
  Status start(Gateway& gateway) override;
  void stop(TimePoint deadline) override;
  Json status() override;

 private:
  std::unique_ptr<LoaderSources> sources_;
  std::unique_ptr<LoaderServer> server_;
};

}  // namespace millrace
