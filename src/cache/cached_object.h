#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "base/task.h"
#include "cache/flight.h"
#include "cache/fresh_bytes.h"
#include "cache/object_version.h"
#include "cache/read_around.h"
#include "cache/readahead.h"
#include "cache/stored_object.h"
#include "cache/unit.h"
#include "cache/unit_bits.h"

namespace millrace {

// How an object is fetched that jobs have plans for.
enum class PlannedFetches : std::uint8_t {
  kNone,    // There is no plan.
  kPieces,  // In whole pieces: all of it is read.
  kBounded  // What is read alone: the rest of a piece may be for others.
};

// What the cache knows about one object version: which units may be read from the disk, which are
// on their way, and who reads in sequence. It does no I/O.
//
// Lifecycle: made when somebody first asks for the object; unloaded until its records were read.
// Whoever holds it may go on reading after the cache forgot it.
//
// Invariants:
//  1. A unit is `ready` only while its bytes are on the disk and were checked since the process
//     started: on the way in, or against their recorded checksum.
//  2. Each unit is in at most one flight. A unit in flight is not on the disk.
//  3. Before the space of a unit is freed its bits are cleared and `generation` is raised. A reader
//     who sees the unit ready, reads, and finds the same generation afterwards has read its bytes.
//  4. No unit is written while its block is being freed.
//
// All methods are safe from any thread.
class CachedObject {
 public:
  CachedObject(ObjectVersion version, ReadaheadOptions readahead);

  const ObjectVersion& version() const { return version_; }
  std::uint32_t units() const { return units_; }

  // ---- The fast path: no lock.
  std::uint64_t generation() const { return generation_.load(std::memory_order_acquire); }
  bool all_ready(UnitRange units) const { return ready_.all(units); }
  std::uint32_t ready_units() const { return ready_units_.load(std::memory_order_relaxed); }
  bool complete() const { return ready_units() == units_; }
  // Where ready units are. Not null once a unit was ready; then it never changes.
  StoredObject* stored() const { return stored_.load(std::memory_order_acquire); }
  bool has_fresh() const { return fresh_pieces_.load(std::memory_order_relaxed) > 0; }
  // True once per block and tick: then its use is worth telling the eviction.
  bool note_touch(std::uint32_t block, std::uint16_t tick);

  // ---- Loading.
  enum class Load : std::uint8_t {
    kDone,      // Loaded: `when_loaded` was not taken.
    kStarting,  // The caller must load and call loaded(). `when_loaded` runs then.
    kRunning,   // Somebody else loads.
  };
  Load begin_load(Task& when_loaded);
  // What was found: units on the disk, none of them checked yet; `stored` is null when there is
  // nothing. Runs what waited, without a lock.
  void loaded(std::unique_ptr<StoredObject> stored, const std::vector<std::uint32_t>& recorded,
              bool handed_out);

  // ---- Reading. The object is loaded.
  struct Needs {
    std::vector<std::shared_ptr<Flight>> flights;   // Cover the units that are not on the disk.
    std::vector<std::shared_ptr<Flight>> new_ones;  // The caller must submit these.
    std::vector<FetchQueue::Ticket> promoted;       // Speculative ones that somebody waits for now.
    std::vector<UnitRange> unchecked;               // On the disk, to be verified before use.
  };
  // What a read of these bytes needs. Makes flights of the missing units, adjacent ones in one
  // flight of at most `fetch_units_max`; with `speculate` also of what the reader may want next.
  // Of an object that is planned so, whole pieces are fetched.
  Needs prepare(ByteRange read, std::uint32_t fetch_units_max, bool speculate);
  // Flights for missing units that nobody waits for yet.
  std::vector<std::shared_ptr<Flight>> prefetch(UnitRange units, std::uint32_t fetch_units_max);
  // Flights for missing units that are wanted on the disk, but that no reader waits for:
  // `new_ones`, and all that cover the units in `flights`.
  Needs prepare_ahead(UnitRange units, std::uint32_t fetch_units_max);
  // What a reader of ready units tells, so that streams go on over what is there already.
  std::vector<std::shared_ptr<Flight>> note_warm_read(ByteRange read,
                                                      std::uint32_t fetch_units_max);

  // While a plan says what is read next, nothing is guessed.
  bool planned() const { return planned_fetches() != PlannedFetches::kNone; }
  PlannedFetches planned_fetches() const { return planned_.load(std::memory_order_relaxed); }
  void set_planned(PlannedFetches planned) { planned_.store(planned, std::memory_order_relaxed); }
  // Small parts of what is fetched are copied out of it: smaller than the least that is worth
  // sharing, and any part for a job with a plan, which gathers parts of many pieces and would keep
  // all of those in memory.
  bool shares(std::uint64_t part_bytes) const {
    return part_bytes >= kSharedBytesMin && !planned();
  }
  // How urgent the flight is by now.
  Urgency urgency(const Flight& flight);
  // The flight was sent. Returns how urgent it is by now.
  Urgency submitted(Flight& flight, FetchQueue::Ticket ticket);
  // Answers at once when the flight has its data, else later. Runs without a lock.
  void wait_for(const std::shared_ptr<Flight>& flight, Flight::Waiter waiter);
  // Answers, after the data, when the flight has ended.
  void wait_for_end(const std::shared_ptr<Flight>& flight, Task waiter);
  // The data has come: answers those who wait.
  void land(Flight& flight, const Slice& data);
  // The data cannot be had: the flight ends, and those who wait are told.
  void fail(const std::shared_ptr<Flight>& flight, const Status& why);
  // Gives the object a place on the disk if it has none, and returns the one it has. Of several
  // callers one creates, and the others wait for it: this blocks.
  Result<StoredObject*> create(const std::function<Result<std::unique_ptr<StoredObject>>()>& make);
  // Whether a landed flight may be written: not while its blocks are being freed.
  bool may_write(const Flight& flight);
  // The flight ends, and its units are on the disk now unless they were `skipped`. They stay in
  // memory only for a reader who is still to come.
  void retire(const std::shared_ptr<Flight>& flight, std::optional<CacheSkip> skipped);

  // ---- Bytes that are in memory as well as on the disk.
  void add_fresh(FreshPiece piece);
  void drop_fresh(UnitRange units);
  // The range in consecutive parts; nothing when some of it is not there. Pieces whose end is
  // reached go: their reader has passed.
  std::vector<Slice> fresh(ByteRange range);

  // ---- Checking.
  // Units that were compared with their checksums and are good, if nothing was freed since
  // `generation`.
  void verified(UnitRange units, std::uint64_t generation);
  // Which units are on the disk, as runs; without `ready_too` only those to be checked.
  std::vector<UnitRange> on_disk(UnitRange within, bool ready_too);
  bool all_on_disk();
  // Takes bad units out of use. False when they are gone already. The caller empties their records
  // and calls freed().
  bool begin_distrust(UnitRange units);

  // ---- Freeing. A handed-out file is never punched, and a small object has no parts: those only
  // go whole.
  enum class Freeing : std::uint8_t {
    kStarted,  // Bits are cleared: free the space of `units`, then call freed().
    kBusy,     // Something of it is in flight or being freed, or it can only go whole.
    kNothing,  // Nothing of it is on the disk.
  };
  Freeing begin_freeing(UnitRange units);
  void freed(UnitRange units);
  // Ends the object's life on the disk: from now on nothing is written to it, and the caller takes
  // it out of the table and unlinks it. Returns the bytes that stay in use because somebody holds
  // the file; the last drop_holder() returns them. Nothing while some of it is in flight.
  std::optional<std::uint64_t> begin_removal();
  // Somebody has the file open: from now on its blocks are not freed one by one.
  void add_holder();
  std::uint64_t drop_holder();
  bool goes_whole();

 private:
  UnitRange pieces_around(UnitRange units) const;
  UnitRange fetched_with(UnitRange units) const;
  bool flying(UnitRange units) const MR_REQUIRES(mutex_);
  std::shared_ptr<Flight> flight_at(std::uint32_t unit) const MR_REQUIRES(mutex_);
  void add_flights(UnitRange units, std::uint32_t fetch_units_max, Urgency urgency,
                   std::vector<std::shared_ptr<Flight>>& into) MR_REQUIRES(mutex_);
  // What a read makes us expect of its reader, and of the others.
  void add_flights_around(ByteRange read, std::uint32_t fetch_units_max,
                          std::vector<std::shared_ptr<Flight>>& into) MR_REQUIRES(mutex_);
  void add_flights_ahead(ByteRange read, std::uint32_t fetch_units_max,
                         std::vector<std::shared_ptr<Flight>>& into) MR_REQUIRES(mutex_);
  [[nodiscard]] std::vector<Task> remove(Flight& flight) MR_REQUIRES(mutex_);
  void erase_fresh(UnitRange units) MR_REQUIRES(mutex_);

  static constexpr std::uint64_t kSharedBytesMin = 64 * kKiB;

  // Constant after construction.
  const ObjectVersion version_;
  const std::uint32_t units_;

  // Read without the lock, written under it.
  UnitBits ready_;
  std::atomic<std::uint32_t> ready_units_ = 0;
  std::atomic<std::uint64_t> generation_ = 0;
  std::atomic<StoredObject*> stored_ = nullptr;
  const std::unique_ptr<std::atomic<std::uint16_t>[]> touched_;
  std::atomic<std::size_t> fresh_pieces_ = 0;
  std::atomic<PlannedFetches> planned_ = PlannedFetches::kNone;

  Mutex create_mutex_;  // Held over the creation of files; taken before mutex_.

  Mutex mutex_;
  enum class LoadState : std::uint8_t { kUnloaded, kLoading, kLoaded };
  LoadState load_state_ MR_GUARDED_BY(mutex_) = LoadState::kUnloaded;
  std::vector<Task> waiting_for_load_ MR_GUARDED_BY(mutex_);
  std::unique_ptr<StoredObject> stored_owner_ MR_GUARDED_BY(mutex_);
  UnitBits on_disk_ MR_GUARDED_BY(mutex_);  // Checked or not.
  // Few at a time: a stream has tens.
  std::vector<std::shared_ptr<Flight>> flights_ MR_GUARDED_BY(mutex_);
  std::vector<FreshPiece> fresh_ MR_GUARDED_BY(mutex_);
  std::vector<UnitRange> being_freed_ MR_GUARDED_BY(mutex_);
  bool handed_out_ MR_GUARDED_BY(mutex_) = false;
  std::uint32_t holders_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t unlinked_bytes_ MR_GUARDED_BY(mutex_) = 0;
  bool removed_ MR_GUARDED_BY(mutex_) = false;
  Readahead readahead_ MR_GUARDED_BY(mutex_);
  ReadAround around_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
