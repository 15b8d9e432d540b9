#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/buffer_pool.h"
#include "base/manual_clock.h"
#include "base/manual_executor.h"
#include "cache/disk_block_cache.h"
#include "metrics/metrics.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "platform/faulty_disk.h"
#include "platform/memory_disk.h"

namespace millrace {

// An object as its store has it.
struct SimulatedObject {
  ObjectVersion version;
  Slice data;
};

// Bytes that are not like those of another name, nor of another place. The same name and size give
// the same bytes, which are made once per process.
Slice simulated_bytes(const std::string& name, std::uint64_t size);

// Whose key is this digit, 64 times.
std::shared_ptr<SectorCipher> simulated_cipher(char digit);

struct SimulationOptions {
  std::uint64_t seed = 0;  // Of the order of tasks; 0: first in, first out.
  Duration store_latency{0};
  std::uint64_t memory_bytes_max = 64 * kMiB;
  std::uint64_t disk_bytes = 64 * kGiB;
  std::uint64_t quota_bytes = kGiB;  // Of each directory.
  int directories = 1;
  std::uint64_t segment_bytes_max = 4 * kMiB;
  std::uint64_t fetch_bytes_max = kBlockBytes;
  std::size_t open_objects_max = 1024;
  FetchQueueOptions fetches = {};
  ReadaheadOptions readahead = {};
  std::shared_ptr<SectorCipher> cipher = nullptr;
};

// A cache between a store and a disk, both in memory and breakable, on the test's own thread: all
// waiting goes through executors and a clock that the test moves. The same options and calls give
// the same run.
class SimulationWorld {
 public:
  explicit SimulationWorld(SimulationOptions options = {});
  ~SimulationWorld();

  SimulatedObject add(const std::string& name, std::uint64_t size, bool with_checksums);

  // Starts the cache on what the disk has.
  Status start();
  // Waits for all that is under way, then closes the cache. Fails the test when something is left.
  void stop();
  // As stop(), but first the disk dies in the middle of whatever is under way: calls fail from now
  // on. With `power_loss` also what was not synced is lost, torn or kept. The disk is well
  // afterwards.
  void crash(bool power_loss);
  bool started() const { return cache_ != nullptr; }
  DiskBlockCache& cache() { return *cache_; }

  // Runs one task; when there is none moves the clock to the next timer. False when there is
  // nothing to wait for.
  bool step();
  // Steps until nothing is under way.
  void drain();

  // Reads, and steps until there is an answer.
  Result<Slice> read(const SimulatedObject& object, ByteRange range);
  ::testing::AssertionResult reads_right(const SimulatedObject& object);

  std::uint64_t gets() const { return requests_->count(StoreOperation::kGetRange); }
  // All kinds together.
  std::uint64_t bad_units();
  // The cache's files whose names end like this, in ascending order.
  std::vector<std::string> files(std::string_view extension);
  // What the data files and segments take on the disk.
  std::uint64_t data_bytes_on_disk();
  // Makes all of it survive a power loss, so that the disk need not remember how it came about.
  void sync_disk();

  const SimulationOptions options;
  ManualClock clock;
  ManualExecutor disk_executor;
  ManualExecutor fetch_executor;
  ManualExecutor caller_executor;  // For tests that name one for their answers.
  MemoryDisk memory_disk;
  FaultyDisk disk{memory_disk};
  Metrics metrics;
  BufferPool buffers;
  std::shared_ptr<FaultyObjectStore> store;

 private:
  std::mt19937_64 random_;
  std::shared_ptr<MemoryObjectStore> inner_;
  std::shared_ptr<RecordingObjectStore> requests_;
  std::unique_ptr<DiskBlockCache> cache_;
};

}  // namespace millrace
