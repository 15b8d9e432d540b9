#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/executor.h"
#include "base/random.h"
#include "base/status.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"
#include "objectstore/store_url.h"
#include "platform/http_client.h"

namespace millrace {

// What stores work with. All of it outlives every store that is opened with it.
struct StoreEnvironment {
  HttpClient& http;
  Executor& disk;
  Clock& clock;
  Random& random;
  Metrics& metrics;
  // Where data that is read goes; null: the heap.
  BufferPool* buffers = nullptr;
  // Environment variables: where credentials, region and endpoint may come from.
  std::function<std::optional<std::string>(const std::string& name)> variables;
  // How often a request is tried.
  std::uint32_t attempts_max = 6;
};

// What to do when the directory of a file store is absent. A typing mistake in a URL that is only
// read from must not make directories.
enum class MissingRoot : std::uint8_t { kRefuse, kCreate };

// Opens the store at a URL with everything around it: back end, measured, retried, and seen through
// its prefix. Sends nothing yet: whether the store is there shows with the first request, but for
// file stores, which give kNotFound when the directory is absent and not to be made.
Result<std::shared_ptr<ObjectStore>> open_store(const StoreUrl& url,
                                                const StoreEnvironment& environment,
                                                MissingRoot missing = MissingRoot::kRefuse);

}  // namespace millrace
