#pragma once

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "frontends/nfs4/nfs_server.h"
#include "platform/posix_disk.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {

// Published versions, the tree over them, and a server of it on loopback that can be restarted.
class NfsWorld : public VfsWorld {
 public:
  explicit NfsWorld(std::string_view exported = "/datasets,squash=none")
      : exports(parse_nfs_exports(exported).value()) {
    options.port = 0;
  }
  ~NfsWorld() { end_service(); }

  // Serves, on the port of the service before. What is published is published before.
  void serve() {
    end_service();
    if (port_ != 0) options.port = port_;
    options.state_directory = state.path("nfs");
    auto started = NfsServer::start({.files = files(),
                                     .clock = system_clock(),
                                     .work = work(),
                                     .metrics = metrics(),
                                     .exports = exports,
                                     .random = system_random(),
                                     .disk = disk_},
                                    options);
    ASSERT_TRUE(started) << started.error().to_string();
    server_ = *std::move(started);
    port_ = server_->port();
  }
  void end_service() { server_.reset(); }

  NfsServer& server() { return *server_; }
  std::uint16_t port() const { return port_; }
  std::uint64_t operations(NfsOperation operation) {
    const std::size_t index = nfs_operation_index(static_cast<std::uint32_t>(operation));
    std::uint64_t sum = 0;
    for (const std::size_t outcome : {std::size_t{0}, std::size_t{1}})
      sum += metrics().counter(MetricId::kNfsOperations, {index, outcome}).value();
    return sum;
  }

  NfsExports exports;
  NfsServerOptions options;

 private:
  PosixDisk disk_;
  std::uint16_t port_ = 0;
  std::unique_ptr<NfsServer> server_;
};

}  // namespace millrace
