#include "daemon/loader_front_end.h"

#include "base/log.h"
#include "base/random.h"
#include "objectstore/file_object_store.h"
#include "platform/path.h"

namespace millrace {
namespace {

// Null where there is no room for the indexes: then tar files need one of their version.
std::shared_ptr<SampleCounting> sample_counting(Gateway& gateway) {
  auto indexes = FileObjectStore::open(join_path(gateway.directory(), "sample_indexes"),
                                       gateway.work(), {.create = true});
  if (!indexes) {
    log_warn("samples in tar files cannot be counted", {{"error", indexes.error().to_string()}});
    return nullptr;
  }
  return std::make_shared<SampleCounting>(
      SampleCounting::Parts{.indexes = *std::move(indexes),
                            .clock = gateway.clock(),
                            .scratch = join_path(gateway.directory(), "listings")});
}

}  // namespace

std::string loader_socket(const std::string& control_socket) { return control_socket + ".loader"; }

std::unique_ptr<LoaderSources> loader_sources(Gateway& gateway) {
  const VersionReads reads{.cache = gateway.cache(),
                           .buffers = gateway.buffers(),
                           .work = gateway.work(),
                           .observer = &gateway.usage()};
  const auto store_at = [&application = gateway.application()](
                            const std::string& url) -> Result<std::shared_ptr<ObjectStore>> {
    MR_ASSIGN_OR_RETURN(const StoreUrl parsed, parse_store_url(url));
    return application.store(parsed, MissingRoot::kRefuse);
  };
  return std::make_unique<LoaderSources>(LoaderSources::Parts{
      .datasets = gateway.datasets(),
      .store = gateway.store(),
      .cache = gateway.cache(),
      .unregistered = UnregisteredVersions({.reads = reads,
                                            .directory = join_path(gateway.directory(), "listings"),
                                            .random = system_random(),
                                            .clock = gateway.clock()}),
      .counting = sample_counting(gateway),
      .store_at = store_at,
      .require_version = gateway.settings().require_version});
}

void LoaderFrontEnd::add_routes(ControlRoutes&) {}

Status LoaderFrontEnd::start(Gateway& gateway) {
  sources_ = loader_sources(gateway);
  auto started = LoaderServer::start({.sources = *sources_,
                                      .failed = gateway.failed_samples(),
                                      .metrics = gateway.metrics(),
                                      .store = gateway.settings().store.to_string()},
                                     {.socket = loader_socket(gateway.settings().socket)});
  if (!started && started.error().code() == StatusCode::kInvalidArgument) {
    // A control socket whose path leaves no room for another: all else is served.
    log_warn("loaders are not served", {{"error", started.error().message()}});
    return {};
  }
  MR_ASSIGN_OR_RETURN(server_, std::move(started));
  return {};
}

// It stays: the control interface may be telling what it does.
void LoaderFrontEnd::stop(TimePoint) {
  if (server_) server_->stop();
}

Json LoaderFrontEnd::status() { return {{"connections", server_ ? server_->connections() : 0}}; }

}  // namespace millrace
