#include "abi/process_gateway.h"

#include <unistd.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "app/application.h"
#include "base/mutex.h"
#include "daemon/gateway.h"
#include "daemon/loader_front_end.h"

namespace millrace {
namespace {

// Processes of one user that read by themselves at the same time.
constexpr int kProcessCachesMax = 32;

// Everything that serves datasets in this process.
struct ProcessGateway {
  std::unique_ptr<Application> application;
  std::unique_ptr<Gateway> gateway;
  std::unique_ptr<LoaderSources> sources;
};

bool is_embedded_store(const LoadedSettings& settings) {
  for (const SettingOrigin& origin : settings.origins) {
    if (origin.spec->name == "store") return origin.source == SettingSource::kDefault;
  }
  return false;
}

Result<std::shared_ptr<ProcessGateway>> start_gateway(const LoadedSettings& loaded) {
  const MissingRoot missing =
      is_embedded_store(loaded) ? MissingRoot::kCreate : MissingRoot::kRefuse;
  for (int number = 1;; ++number) {
    Settings settings = loaded.settings;
    settings.cache = fmt::format("{}.process-{}", loaded.settings.cache, number);
    auto started = std::make_shared<ProcessGateway>();
    MR_ASSIGN_OR_RETURN(started->application, Application::start(settings, process_environment()));
    auto gateway = Gateway::open(*started->application, missing);
    if (!gateway && gateway.error().code() == StatusCode::kConflict && number < kProcessCachesMax) {
      continue;  // Another process has it.
    }
    if (!gateway) return failure(gateway.error());
    started->gateway = *std::move(gateway);
    started->sources = loader_sources(*started->gateway);
    return started;
  }
}

// The gateways of this process, while anything uses them. Never taken down: who ends without
// closing may still read.
class GatewayTable {
 public:
  // That of this process: one that was forked knows nothing of its parent's, whose threads are not
  // here.
  static GatewayTable& instance() {
    static std::atomic<GatewayTable*> current = nullptr;
    GatewayTable* known = current.load();
    if (known != nullptr && known->process_ == ::getpid()) return *known;
    auto fresh = std::make_unique<GatewayTable>();
    if (current.compare_exchange_strong(known, fresh.get())) return *fresh.release();
    return *known;
  }

  Result<std::shared_ptr<ProcessGateway>> get(const LoadedSettings& settings) {
    std::string key;
    for (const SettingOrigin& origin : settings.origins)
      key += fmt::format("{}={}\n", origin.spec->name, origin.text);
    MutexLock lock(mutex_);
    if (auto known = gateways_[key].lock()) return known;
    MR_ASSIGN_OR_RETURN(std::shared_ptr<ProcessGateway> started, start_gateway(settings));
    gateways_[key] = started;
    return started;
  }

 private:
  const pid_t process_ = ::getpid();
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<ProcessGateway>> gateways_ MR_GUARDED_BY(mutex_);
};

// An engine, and what it stands on.
struct OwnedEngine {
  std::shared_ptr<ProcessGateway> gateway;
  std::shared_ptr<ProcessEngine> engine;
};

}  // namespace

Result<std::shared_ptr<BatchEngine>> open_in_process(const RequestContext& context,
                                                     const LoadedSettings& settings,
                                                     const std::vector<SourceChoice>& sources) {
  auto owned = std::make_shared<OwnedEngine>();
  MR_ASSIGN_OR_RETURN(owned->gateway, GatewayTable::instance().get(settings));
  MR_ASSIGN_OR_RETURN(owned->engine, owned->gateway->sources->open(context, sources));
  return std::shared_ptr<BatchEngine>(owned, owned->engine.get());
}

}  // namespace millrace
