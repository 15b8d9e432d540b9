#pragma once

#include <map>
#include <memory>
#include <string>

#include "app/environment.h"
#include "app/settings.h"
#include "base/buffer_pool.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "base/thread_pool.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"
#include "objectstore/open_store.h"
#include "platform/http_client.h"

namespace millrace {

// The object graph, top to bottom: the one place where the real parts are chosen and put together.
// Everything below takes its parts by reference and knows none of this.
//
// Lifecycle: start() makes it, destruction takes it down in reverse order; stores handed out must
// be let go before. All methods are safe from any thread.
class Application {
 public:
  static Result<std::unique_ptr<Application>> start(const Settings& settings,
                                                    EnvironmentLookup environment);
  ~Application();
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;

  // The store at a URL, with its wrappers. The same URL gives the same object.
  Result<std::shared_ptr<ObjectStore>> store(const StoreUrl& url, MissingRoot missing);

  // The store at a URL that a manifest of the registry names, with the credentials that this user
  // has for any URL. kPermissionDenied for a directory of this machine, unless the registry is one
  // too: whoever can write to a bucket must not choose which local files others read.
  Result<std::shared_ptr<ObjectStore>> other_store(const std::string& url);

  // What requests to an S3 store are signed with, and where it comes from; no secret.
  Result<std::string> describe_credentials(const RequestContext& context, const StoreUrl& url);

  const Settings& settings() const { return settings_; }
  Metrics& metrics() { return metrics_; }
  BufferPool& buffers() { return buffers_; }

 private:
  Application(const Settings& settings, EnvironmentLookup environment);

  // Null when it was not opened so far.
  std::shared_ptr<ObjectStore> known_store(const std::string& name) MR_EXCLUDES(mutex_);

  // Constant after construction, in the order in which they depend on each other.
  const Settings settings_;
  const EnvironmentLookup environment_;
  Metrics metrics_;
  BufferPool buffers_;
  ThreadPool disk_;
  std::unique_ptr<HttpClient> http_;
  StoreEnvironment store_environment_;

  Mutex mutex_;
  std::map<std::string, std::shared_ptr<ObjectStore>> stores_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
