#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "base/cancellation.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/sample_index.h"
#include "loader/sample_source.h"
#include "objectstore/object_store.h"
#include "platform/digest.h"

namespace millrace {

// Finds the samples of tar files whose version has no sample index, in one pass over them on first
// use. The files are read through the cache, headers mostly, so nothing is fetched twice.
//
// A pass goes on when those who wait for it give up, so that whoever asks again waits for the rest
// only; the index that it makes is kept. What is counted for several is counted once.
//
// Lifecycle: destruction ends passes that are under way. Safe from any thread; blocks.
class SampleCounting {
 public:
  struct Parts {
    std::unique_ptr<ObjectStore> indexes;  // Of this machine, for what others cannot have.
    Clock& clock;
    std::string scratch;  // A directory, for files without a name. Made when absent.
    std::size_t parallel = 16;
    std::size_t passes_max = 4;
  };
  explicit SampleCounting(Parts parts) : parts_(std::move(parts)) {}
  ~SampleCounting();
  SampleCounting(const SampleCounting&) = delete;
  SampleCounting& operator=(const SampleCounting&) = delete;

  struct Place {
    std::string name;  // For people.
    // Where others find the index, if it can be written; null for what is not registered. Outlives
    // this.
    ObjectStore* shared = nullptr;
  };
  // The index of these files. kDeadlineExceeded says how far the pass has come; else as
  // build_sample_index() fails. kResourceExhausted when too many are under way.
  Result<std::unique_ptr<SampleIndex>> open(const RequestContext& context,
                                            std::shared_ptr<SampleFiles> files, const Place& place);

 private:
  struct Pass {
    std::atomic<std::uint64_t> shards = 0;
    std::atomic<std::uint64_t> shards_done = 0;
    std::thread thread;
    bool has_ended = false;  // Guarded by mutex_, as status.
    Status status = {};
  };
  using PassPtr = std::shared_ptr<Pass>;

  Result<PassPtr> join_or_start(const Sha256Digest& digest, std::shared_ptr<SampleFiles> files,
                                const Place& place) MR_EXCLUDES(mutex_);
  Status wait(const RequestContext& context, Pass& pass, const Place& place) MR_EXCLUDES(mutex_);
  Status count(SampleFiles& files, const Place& place, Pass& pass);
  void forget_ended(const Sha256Digest& digest, const PassPtr& pass) MR_EXCLUDES(mutex_);

  const Parts parts_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  Mutex mutex_;
  CondVar changed_;
  std::map<Sha256Digest, PassPtr> passes_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
