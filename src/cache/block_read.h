#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer_pool.h"
#include "base/clock.h"
#include "base/completion.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "cache/cache_directories.h"
#include "cache/cached_object.h"
#include "cache/fetch_queue.h"
#include "cache/filler.h"
#include "cache/verifier.h"
#include "metrics/metrics.h"

namespace millrace {

// What a read works with. All of it outlives every read.
struct ReadParts {
  BufferPool& buffers;
  Clock& clock;
  Executor& disk;
  Metrics& metrics;
  CacheDirectories& directories;
  FetchQueue& fetches;
  FreshBytes& fresh;
  Filler& filler;
  Verifier& verifier;
  Gate& gate;
  std::uint32_t fetch_units_max;
};

// Reads the records of an object, unless that was done: true when it is loaded by now. Otherwise
// `when_loaded` runs later.
bool ensure_loaded(const ReadParts& parts, const std::shared_ptr<CachedObject>& object,
                   Task when_loaded);

// Fetches units that nobody waits for yet, once the object is loaded: what is neither on the disk
// nor on its way, in requests of at most `fetch_units_max`, at the cost of `account`, which may be
// null. Does not block.
void fetch_ahead(const ReadParts& parts, const std::shared_ptr<CachedObject>& object,
                 UnitRange units, std::uint32_t fetch_units_max,
                 const std::shared_ptr<FetchAccount>& account);

// One read that the fast path could not answer: some of it is not on the disk, was not checked yet,
// or is not in memory.
//
// Lifecycle: shared by its callbacks, ends with its answer. It goes through the steps below until
// all bytes are there; what was evicted in between sends it back to the start.
//   load      the object's records are read
//   prepare   what is missing is fetched, what was not checked is checked
//   gather    the fetches deliver
//   assemble  the bytes are put together, from memory and from the disk
class BlockRead : public std::enable_shared_from_this<BlockRead> {
 public:
  // `range` is not empty and within the object.
  static void start(const ReadParts& parts, Gate::Pass pass, const RequestContext& context,
                    std::shared_ptr<CachedObject> object, ByteRange range, Completion<Slice> done);

  BlockRead(const ReadParts& parts, Gate::Pass pass, const RequestContext& context,
            std::shared_ptr<CachedObject> object, ByteRange range, Completion<Slice> done);
  ~BlockRead();

 private:
  // Data that a flight brought.
  struct Piece {
    UnitRange units;
    Slice data;
  };

  void watch_context();
  void run();
  void prepare();
  void gather(const std::vector<std::shared_ptr<Flight>>& flights);
  void delivered(UnitRange units, Result<Slice> data);
  void assemble();
  // The answer, when a single piece has all of it.
  std::optional<Slice> one_piece();
  void assemble_on_disk_thread();
  // Copies what the pieces have and reads the rest. False: something is gone by now.
  Result<bool> fill(MutableByteView into);
  Result<bool> read_from_disk(ByteRange bytes, MutableByteView into);
  // In ascending order.
  std::vector<Piece> pieces();
  // False when there are none.
  bool let_go_of_pieces();
  // What of the range no piece has.
  std::vector<ByteRange> gaps();
  void finish(Result<Slice> result);

  // Held longer than the answer takes: a read whose deadline passed still has callbacks to come.
  const Gate::Pass pass_;
  const ReadParts& parts_;
  const RequestContext context_;
  const std::shared_ptr<CachedObject> object_;
  const ByteRange range_;

  // One step runs at a time; steps follow each other through executors and the mutex.
  std::uint32_t rounds_ = 0;
  std::uint32_t pauses_ = 0;
  bool prepared_ = false;
  CacheSource source_ = CacheSource::kDisk;

  Mutex mutex_;
  std::vector<Piece> pieces_ MR_GUARDED_BY(mutex_);
  std::size_t awaited_ MR_GUARDED_BY(mutex_) = 0;
  Status failure_ MR_GUARDED_BY(mutex_);

  // The answer goes out once: by the last step, the deadline or the cancellation.
  std::atomic<bool> answered_ = false;
  Completion<Slice> done_;
  std::unique_ptr<Clock::Timer> deadline_;
  Cancellation::CallbackId cancel_id_ = 0;
};

}  // namespace millrace
