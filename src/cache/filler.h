#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "cache/cache_directories.h"
#include "cache/cached_object.h"
#include "cache/fetch_queue.h"
#include "cache/fresh_bytes.h"
#include "cache/object_version.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"

namespace millrace {

// Brings units from the stores to the disk. Readers get them as soon as they have come and were
// checked; writing them follows. All methods are safe from any thread.
class Filler {
 public:
  // `disk` runs what blocks. All must outlive the filler.
  Filler(FetchQueue& fetches, CacheDirectories& directories, FreshBytes& fresh, Executor& disk,
         Metrics& metrics);
  // Waits for writes under way. The fetch queue must be closed before.
  void close() { writes_.close(); }

  // Objects that name this store are fetched from there. Replaces an earlier one.
  void add_store(const StoreId& id, std::shared_ptr<ObjectStore> store);

  // Sends flights that are new in the object's list, at the cost of `account`, which may be null.
  // Failures reach those who wait for the flight.
  void start(const std::shared_ptr<CachedObject>& object,
             const std::vector<std::shared_ptr<Flight>>& flights,
             const std::shared_ptr<FetchAccount>& account);

 private:
  using ObjectPtr = std::shared_ptr<CachedObject>;
  using FlightPtr = std::shared_ptr<Flight>;

  void submit(const ObjectPtr& object, const FlightPtr& flight);
  void landed(const ObjectPtr& object, const FlightPtr& flight, Result<FetchQueue::Fetched> result);
  void write(const ObjectPtr& object, const FlightPtr& flight, const Slice& data,
             const std::vector<std::uint32_t>& checksums);
  // Nothing when it was written.
  std::optional<CacheSkip> keep(const ObjectPtr& object, const Flight& flight, const Slice& data,
                                const std::vector<std::uint32_t>& checksums);
  CacheSkip skip(CacheSkip why);
  std::shared_ptr<ObjectStore> store_of(const StoreId& id);

  FetchQueue& fetches_;
  CacheDirectories& directories_;
  FreshBytes& fresh_;
  Executor& disk_;
  Metrics& metrics_;
  Gate writes_;

  Mutex mutex_;
  std::map<StoreId, std::shared_ptr<ObjectStore>> stores_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
