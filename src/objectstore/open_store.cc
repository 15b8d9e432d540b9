#include "objectstore/open_store.h"

#include <utility>

#include "objectstore/file_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/metered_object_store.h"
#include "objectstore/open_s3_store.h"
#include "objectstore/prefixed_object_store.h"
#include "objectstore/retry_control.h"
#include "objectstore/retrying_object_store.h"

namespace millrace {
namespace {

Result<std::shared_ptr<ObjectStore>> open_file(const StoreUrl& url,
                                               const StoreEnvironment& environment,
                                               MissingRoot missing) {
  FileObjectStoreOptions options;
  options.create = missing == MissingRoot::kCreate;
  options.buffers = environment.buffers;
  options.clock = &environment.clock;
  options.random = &environment.random;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> store,
                      FileObjectStore::open(url.root, environment.disk, options));
  return store;
}

std::shared_ptr<ObjectStore> open_memory(const StoreUrl& url, const StoreEnvironment& environment) {
  MemoryObjectStoreOptions options;
  options.name = url.root;
  return std::make_shared<MemoryObjectStore>(environment.clock, environment.disk, options);
}

}  // namespace

Result<std::shared_ptr<ObjectStore>> open_store(const StoreUrl& url,
                                                const StoreEnvironment& environment,
                                                MissingRoot missing) {
  RetryPolicy policy;
  policy.attempts_max = environment.attempts_max;
  auto retries = std::make_shared<RetryControl>(policy, environment.clock, environment.random,
                                                environment.metrics);
  std::shared_ptr<ObjectStore> store;
  switch (url.scheme) {
    case StoreUrl::Scheme::kFile: {
      MR_ASSIGN_OR_RETURN(store, open_file(url, environment, missing));
      break;
    }
    case StoreUrl::Scheme::kMemory:
      store = open_memory(url, environment);
      break;
    case StoreUrl::Scheme::kS3: {
      MR_ASSIGN_OR_RETURN(store, open_s3_store(url, environment, retries));
      break;
    }
  }
  store = std::make_shared<MeteredObjectStore>(std::move(store), environment.metrics,
                                               environment.clock);
  store =
      std::make_shared<RetryingObjectStore>(std::move(store), std::move(retries), environment.disk);
  if (!url.prefix.empty()) {
    store = std::make_shared<PrefixedObjectStore>(std::move(store), url.prefix);
  }
  return store;
}

}  // namespace millrace
