#pragma once

#include <cstdint>
#include <memory>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/completion.h"
#include "base/request_context.h"
#include "base/status.h"
#include "cache/cache_leases.h"
#include "cache/fetch_queue.h"
#include "cache/object_version.h"
#include "cache/planned_reads.h"
#include "objectstore/object_store.h"

namespace millrace {

// A whole cached object as a file. While this lives the bytes behind the descriptor stay as they
// are, also when the cache evicts the object meanwhile.
class CompleteObject {
 public:
  virtual ~CompleteObject() = default;
  // Read-only, and exactly the object's size. Valid while this lives; a duplicate may live longer.
  virtual int descriptor() const = 0;
  virtual std::uint64_t size() const = 0;
};

struct CacheUsage {
  std::uint64_t used_bytes = 0;
  std::uint64_t limit_bytes = 0;
  std::uint64_t leased_bytes = 0;
  bool scanned = false;  // All that was on the disk at the start is counted.
};

struct ScrubOptions {
  // A scrub must not starve readers. 0: as fast as the disk.
  std::uint64_t bytes_per_second_max = 64 * kMiB;
};

struct CheckReport {
  std::uint64_t objects = 0;
  std::uint64_t bytes = 0;
  std::uint64_t bad_units = 0;
};

// Blocks of immutable objects on local disks: the first reader pays, everyone after reads at local
// speed. docs/life_of_a_read.md follows a read through it.
//
// All methods are safe from any thread. read() and expect() do not wait; the others block and must
// not run on an event loop, nor on the cache's own executors.
class BlockCache {
 public:
  virtual ~BlockCache() = default;

  // Says where objects of a store are fetched.
  virtual void add_store(const StoreId& id, std::shared_ptr<ObjectStore> store) = 0;

  // Delivers the range, cut at the object's end, verified. A range that starts past the end is
  // kInvalidArgument. kPreconditionFailed when the store has another version by now; kCorruption
  // when the store's bytes do not fit the manifest; otherwise the store's failures. Failures of the
  // cache disk are none: the bytes come from the store then. What is at hand is answered inside
  // the call if `done` names the inline executor.
  virtual void read(const RequestContext& context, const ObjectVersion& object, ByteRange range,
                    Completion<Slice> done) = 0;

  // The object as a file, for sendfile, mmap, passthrough and other processes. kNotFound when some
  // of it is not cached; kUnsupported when the cache is encrypted. Every unit was verified since
  // the process started: kUnavailable while that is still to be done for more of it than the caller
  // should wait for, which this call begins. kResourceExhausted when this process may have no more
  // files open. Small objects are given as sealed copies in memory.
  virtual Result<std::unique_ptr<CompleteObject>> open_complete(const RequestContext& context,
                                                                const ObjectVersion& object) = 0;

  // Gets the range onto the disk. What is speculative waits until no reader's fetch does, and takes
  // no memory once it is on the disk. kResourceExhausted when no room can be made for it;
  // kUnavailable while the disk fails.
  virtual Status warm(const RequestContext& context, const ObjectVersion& object, ByteRange range,
                      Urgency urgency) = 0;
  // Somebody will probably read the range soon: it is fetched when no reader's fetch waits, and
  // kept in memory for him for a while. Nothing happens where too much is fetched ahead already,
  // where a plan says what is read, or where reading ahead is off. Does not block, and at most a
  // window of the readahead, or a quarter of the disk's share, is taken from the range.
  virtual void expect(const RequestContext& context, const ObjectVersion& object,
                      ByteRange range) = 0;
  // Takes the object off the disk. kConflict while some of it is being fetched or is leased.
  virtual Status drop(const RequestContext& context, const ObjectVersion& object) = 0;

  // Checks every cached unit of one object against its checksum. Bad ones are forgotten.
  virtual Result<CheckReport> verify(const RequestContext& context,
                                     const ObjectVersion& object) = 0;

  // Checks all that is cached, no faster than the options say, until done or the context ends.
  virtual Result<CheckReport> scrub(const RequestContext& context, const ScrubOptions& options) = 0;

  // How much of the range is on the disk. Whether it is sound shows when it is read.
  virtual Result<std::uint64_t> cached_bytes(const RequestContext& context,
                                             const ObjectVersion& object, ByteRange range) = 0;
  virtual CacheUsage usage() = 0;
  virtual CacheLeases& leases() = 0;
  virtual PlannedReads& plans() = 0;
};

}  // namespace millrace
