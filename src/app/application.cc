#include "app/application.h"

#include <sys/stat.h>

#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "objectstore/open_s3_store.h"
#include "platform/curl_http_client.h"

namespace millrace {
namespace {

// Which directory a file store's URL leads to now: a store keeps to the one that it was opened
// with, also when somebody moves that away and makes another one in its place. Empty for other
// stores.
std::string directory_behind(const StoreUrl& url) {
  struct stat facts{};
  if (url.scheme != StoreUrl::Scheme::kFile || ::stat(url.root.c_str(), &facts) != 0) return {};
  return fmt::format("{}:{}", facts.st_dev, facts.st_ino);
}

CurlHttpClientOptions http_options(const Settings& settings) {
  CurlHttpClientOptions options;
  options.connections_max = settings.connections_max;
  return options;
}

}  // namespace

Application::Application(const Settings& settings, EnvironmentLookup environment)
    : settings_(settings),
      environment_(std::move(environment)),
      // An upload's parts come and go by the dozen; fresh memory for each costs more than a copy.
      buffers_({.bytes_max = settings.memory_max_bytes,
                .idle_bytes_max = settings.memory_max_bytes / 2}),
      disk_({.name = "disk", .threads = settings.disk_threads}),
      http_(std::make_unique<CurlHttpClient>(http_options(settings))),
      store_environment_{.http = *http_,
                         .disk = disk_,
                         .clock = system_clock(),
                         .random = system_random(),
                         .metrics = metrics_,
                         .buffers = &buffers_,
                         .variables = environment_,
                         .attempts_max = settings.attempts_max} {}

Application::~Application() = default;

Result<std::unique_ptr<Application>> Application::start(const Settings& settings,
                                                        EnvironmentLookup environment) {
  return std::unique_ptr<Application>(new Application(settings, std::move(environment)));
}

Result<std::shared_ptr<ObjectStore>> Application::store(const StoreUrl& url, MissingRoot missing) {
  // Not under the lock: a directory may be on another machine, which does not answer.
  const std::string name = url.to_string() + '\n';
  if (auto known = known_store(name + directory_behind(url))) return known;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> store,
                      open_store(url, store_environment_, missing));
  const std::string found_name = name + directory_behind(url);
  MutexLock lock(mutex_);
  // That of a directory which is gone stays: others may read through it. Of two who opened it at
  // once the first one's is taken.
  return stores_.try_emplace(found_name, std::move(store)).first->second;
}

std::shared_ptr<ObjectStore> Application::known_store(const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = stores_.find(name);
  return found == stores_.end() ? nullptr : found->second;
}

Result<std::shared_ptr<ObjectStore>> Application::other_store(const std::string& url) {
  const auto parsed = parse_store_url(url);
  if (!parsed) return failure(StatusCode::kCorruption, parsed.error().message());
  if (parsed->is_local() && !settings_.store.is_local()) {
    return failure(StatusCode::kPermissionDenied,
                   "a registry in a bucket cannot lead to files of this machine");
  }
  auto other = store(*parsed, MissingRoot::kRefuse);
  // It was there when the objects were registered: a disk that is not mounted says nothing of them.
  if (!other && other.error() == StatusCode::kNotFound) {
    return failure(StatusCode::kUnavailable, other.error().message());
  }
  return other;
}

Result<std::string> Application::describe_credentials(const RequestContext& context,
                                                      const StoreUrl& url) {
  return describe_s3_credentials(context, url, store_environment_);
}

}  // namespace millrace
