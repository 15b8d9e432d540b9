#include "cache/disk_block_cache.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/log.h"
#include "cache/complete_object.h"

namespace millrace {
namespace {

// How much warm() has on its way at a time.
constexpr std::uint32_t kWarmWindowUnits = 16 * kBlockUnits;
// What open_complete() checks while its caller waits: 64 MiB, which take tens of milliseconds.
constexpr std::uint32_t kUnitsCheckedAtOnceMax = 16 * kBlockUnits;
// And a caller who must not wait: a few milliseconds.
constexpr std::uint32_t kUnitsCheckedAtHandMax = kBlockUnits;
// How long it waits when too much is fetched ahead already.
constexpr Duration kRefusedPause = std::chrono::milliseconds(20);
// What goes as often as this, right after it was fetched, does not fit.
constexpr int kEvictedRoundsMax = 2;
// Of the disk that it is for: what is expected must not push out what is being read.
constexpr std::uint64_t kExpectedShare = 4;

// Of several who answer, the first does.
class FirstAnswer {
 public:
  explicit FirstAnswer(Completion<bool> done) : done_(std::move(done)) {}

  void give(Status status) {
    MutexLock lock(mutex_);
    if (!done_) return;
    Completion<bool> done = std::move(done_);
    lock.unlock();
    done.complete(status.ok() ? Result<bool>(true) : Result<bool>(failure(std::move(status))));
  }

 private:
  Mutex mutex_;
  Completion<bool> done_ MR_GUARDED_BY(mutex_);
};

}  // namespace

// ---- Opening and closing

Result<std::unique_ptr<DiskBlockCache>> DiskBlockCache::open(
    const BlockCacheEnvironment& environment, BlockCacheOptions options) {
  if (options.directories.empty()) {
    return failure(StatusCode::kInvalidArgument, "a cache needs a directory");
  }
  if (options.fetch_bytes_max == 0 || options.fetch_bytes_max % kUnitBytes != 0) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the largest fetch must be a multiple of {} bytes", kUnitBytes));
  }
  std::vector<std::unique_ptr<CacheDirectory>> directories;
  for (CacheDirectoryOptions& directory : options.directories) {
    MR_ASSIGN_OR_RETURN(directories.emplace_back(),
                        CacheDirectory::open(environment.disk, std::move(directory),
                                             environment.clock, environment.metrics));
  }
  std::unique_ptr<DiskBlockCache> cache(
      new DiskBlockCache(environment, options, std::move(directories)));
  cache->start_scan();
  return cache;
}

DiskBlockCache::DiskBlockCache(const BlockCacheEnvironment& environment,
                               const BlockCacheOptions& options,
                               std::vector<std::unique_ptr<CacheDirectory>> directories)
    : environment_(environment),
      expected_bytes_max_(options.readahead.window_bytes_max),
      hits_(environment.metrics.counter(MetricId::kCacheReads,
                                        {static_cast<std::size_t>(CacheSource::kDisk)})),
      hit_bytes_(environment.metrics.counter(MetricId::kCacheReadBytes,
                                             {static_cast<std::size_t>(CacheSource::kDisk)})),
      fresh_hits_(environment.metrics.counter(MetricId::kCacheReads,
                                              {static_cast<std::size_t>(CacheSource::kMemory)})),
      fresh_hit_bytes_(environment.metrics.counter(
          MetricId::kCacheReadBytes, {static_cast<std::size_t>(CacheSource::kMemory)})),
      scrubbed_bytes_(environment.metrics.counter(MetricId::kCacheScrubbedBytes)),
      fresh_(options.fresh_bytes_max, environment.clock),
      objects_(options.readahead, options.open_objects_max, options.open_large_objects_max),
      directories_(std::move(directories), objects_, environment.metrics),
      fetches_(options.fetches, environment.fetch_executor, environment.clock, environment.metrics,
               [this] { fresh_.drop_all(); }),
      filler_(fetches_, directories_, fresh_, environment.disk_executor, environment.metrics),
      verifier_(directories_, environment.metrics),
      checks_(verifier_, environment.disk_executor),
      leases_(directories_, environment.clock),
      parts_{.buffers = environment.buffers,
             .clock = environment.clock,
             .disk = environment.disk_executor,
             .metrics = environment.metrics,
             .directories = directories_,
             .fetches = fetches_,
             .fresh = fresh_,
             .filler = filler_,
             .verifier = verifier_,
             .gate = gate_,
             .fetch_units_max = static_cast<std::uint32_t>(options.fetch_bytes_max / kUnitBytes)},
      plans_(parts_, objects_, options.planned_bytes_ahead_max) {}

DiskBlockCache::~DiskBlockCache() {
  closing_ = true;
  fetches_.close();
  gate_.close();
  checks_.close();
  filler_.close();
  scan_.close();
  // Somebody may hold an object longer than this lives.
  fresh_.drop_all();
}

void DiskBlockCache::start_scan() {
  environment_.disk_executor.resume([this, pass = scan_.enter()]() mutable {
    // Whoever loads an object just now keeps it, so the last of them ends the scan.
    const std::shared_ptr<const void> end(
        this, [this, inside = std::move(pass)](const void*) { end_scan(); });
    for (const auto& directory : directories_.all()) {
      const Status status =
          directories_.count_all(*directory, [this] { return closing_.load(); }, end);
      if (!status.ok()) {
        log_error("cannot count what the cache holds", {{"error", status.to_string()}});
      }
    }
  });
}

void DiskBlockCache::end_scan() {
  if (closing_) return;
  for (const auto& directory : directories_.all()) {
    directory->all_counted();
    // What was filled meanwhile may be too much beside what was found.
    directories_.enforce_limit(*directory);
  }
  scanned_ = true;
}

void DiskBlockCache::wait_for_scan() { scan_.close(); }

void DiskBlockCache::add_store(const StoreId& id, std::shared_ptr<ObjectStore> store) {
  filler_.add_store(id, std::move(store));
}

// ---- Reading

void DiskBlockCache::read(const RequestContext& context, const ObjectVersion& object,
                          ByteRange range, Completion<Slice> done) {
  if (range.offset > object.size()) {
    done.complete(failure(StatusCode::kInvalidArgument,
                          fmt::format("'{}' has {} bytes, and {} is past its end",
                                      object.key().value(), object.size(), range.offset)));
    return;
  }
  range.length = std::min(range.length, object.size() - range.offset);
  if (range.empty()) {
    done.complete(Slice());
    return;
  }
  std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  if (read_fresh(context, cached, range, done) || read_ready(context, cached, range, done)) return;
  std::optional<Gate::Pass> pass = gate_.enter();
  if (!pass) {
    done.complete(failure(StatusCode::kCancelled, "the cache is closing"));
    return;
  }
  if (Status status = context.check(environment_.clock); !status.ok()) {
    done.complete(failure(std::move(status)));
    return;
  }
  touch(*cached, units_of(range));
  BlockRead::start(parts_, std::move(*pass), context, std::move(cached), range, std::move(done));
}

bool DiskBlockCache::read_fresh(const RequestContext& context,
                                const std::shared_ptr<CachedObject>& object, ByteRange range,
                                Completion<Slice>& done) {
  if (!object->has_fresh()) return false;
  std::vector<Slice> parts = object->fresh(range);
  if (parts.empty()) return false;
  if (parts.size() > 1 || !object->shares(range.length)) {
    Result<Buffer> buffer = environment_.buffers.try_allocate(range.length);
    if (!buffer) return false;
    auto into = buffer->bytes().begin();
    for (const Slice& part : parts)
      into = std::ranges::copy(part.bytes(), into).out;
    parts = {std::move(*buffer).freeze()};
  }
  touch(*object, units_of(range));
  fresh_hits_.add();
  fresh_hit_bytes_.add(range.length);
  note_warm_read(context, object, range);
  done.complete(std::move(parts.front()));
  return true;
}

bool DiskBlockCache::read_ready(const RequestContext& context,
                                const std::shared_ptr<CachedObject>& object, ByteRange range,
                                Completion<Slice>& done) {
  const UnitRange units = units_of(range);
  const std::uint64_t generation = object->generation();
  if (!object->all_ready(units)) return false;
  Result<Buffer> buffer = environment_.buffers.try_allocate(range.length);
  if (!buffer) return false;
  const Result<bool> read = object->stored()->read_now(range.offset, buffer->bytes());
  if (!read || !*read || object->generation() != generation) return false;
  touch(*object, units);
  hits_.add();
  hit_bytes_.add(range.length);
  // A stream goes on over what is there already.
  if (!object->complete()) note_warm_read(context, object, range);
  done.complete(std::move(*buffer).freeze());
  return true;
}

void DiskBlockCache::note_warm_read(const RequestContext& context,
                                    const std::shared_ptr<CachedObject>& object, ByteRange range) {
  if (context.has_plan()) return;
  filler_.start(object, object->note_warm_read(range, parts_.fetch_units_max), context.account());
}

void DiskBlockCache::touch(CachedObject& object, UnitRange units) {
  const std::uint16_t tick = directories_.tick();
  for (std::uint32_t block = units.first / kBlockUnits; block * kBlockUnits < units.end();
       ++block) {
    if (object.note_touch(block, tick)) {
      directories_.of(object.version().digest()).space().touch(object.version().digest(), block);
    }
  }
}

// ---- Whole objects

Status DiskBlockCache::load(const RequestContext& context,
                            const std::shared_ptr<CachedObject>& object) {
  Waiter<bool> waiter;
  if (!ensure_loaded(parts_, object,
                     [done = waiter.completion()]() mutable { done.complete(true); })) {
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool loaded, waiter.wait());
  }
  return context.check(environment_.clock);
}

Result<std::unique_ptr<CompleteObject>> DiskBlockCache::open_complete(const RequestContext& context,
                                                                      const ObjectVersion& object) {
  CacheDirectory& directory = directories_.of(object.digest());
  if (directory.is_encrypted()) {
    return failure(StatusCode::kUnsupported, "an encrypted cache hands out no files");
  }
  const std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  MR_RETURN_IF_ERROR(load(context, cached));
  if (!cached->all_on_disk()) {
    return failure(StatusCode::kNotFound,
                   fmt::format("'{}' is not cached whole", object.key().value()));
  }
  const std::uint64_t units_max =
      AtHandOnly::is_in_force() ? kUnitsCheckedAtHandMax : kUnitsCheckedAtOnceMax;
  if (cached->units() - cached->ready_units() > units_max) {
    checks_.start(cached);
    return failure(StatusCode::kUnavailable,
                   fmt::format("'{}' is being checked", object.key().value()));
  }
  if (!objects_.has_room_for_large()) {
    return failure(StatusCode::kResourceExhausted,
                   "as many files are open as this process may have");
  }
  verifier_.check(*cached, {0, cached->units()}, CacheDamage::kRead, false);
  if (object.size() <= kSmallObjectBytesMax) {
    if (!cached->complete()) {
      return failure(StatusCode::kNotFound,
                     fmt::format("'{}' is not cached", object.key().value()));
    }
    Waiter<Slice> waiter;
    read(context, object, {0, object.size()}, waiter.completion());
    MR_ASSIGN_OR_RETURN(const Slice data, waiter.wait());
    return MemoryCompleteObject::make(data);
  }
  StoredObject* const stored = cached->stored();
  if (stored == nullptr || !cached->complete()) {
    return failure(StatusCode::kNotFound,
                   fmt::format("'{}' is not cached whole", object.key().value()));
  }
  // From here on it can only go whole; it is looked at again before it is handed out.
  HeldObject held(cached, directory.space());
  MR_RETURN_IF_ERROR(stored->mark_handed_out());
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskFile> file, directory.open_for_reading(object.digest()));
  if (!cached->complete()) {
    return failure(StatusCode::kNotFound,
                   fmt::format("'{}' was evicted just now", object.key().value()));
  }
  return FileCompleteObject::make(std::move(file), object.size(), std::move(held));
}

Status DiskBlockCache::warm(const RequestContext& context, const ObjectVersion& object,
                            ByteRange range, Urgency urgency) {
  if (range.offset > object.size()) {
    return {StatusCode::kInvalidArgument,
            fmt::format("'{}' has {} bytes, and {} is past its end", object.key().value(),
                        object.size(), range.offset)};
  }
  range.length = std::min(range.length, object.size() - range.offset);
  const std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  MR_RETURN_IF_ERROR(load(context, cached));
  UnitRange rest = units_of(range);
  while (!rest.empty()) {
    const UnitRange window{rest.first, std::min(rest.count, kWarmWindowUnits)};
    MR_RETURN_IF_ERROR(fetch(context, cached, window, urgency));
    rest = {window.end(), rest.count - window.count};
  }
  return {};
}

void DiskBlockCache::expect(const RequestContext& context, const ObjectVersion& object,
                            ByteRange range) {
  if (range.offset >= object.size()) return;
  const CacheSpace& space = directories_.of(object.digest()).space();
  range.length = std::min({range.length, object.size() - range.offset, expected_bytes_max_,
                           space.limit_bytes() / kExpectedShare});
  if (range.empty()) return;
  const std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  if (cached->planned()) return;
  fetch_ahead(parts_, cached, units_of(range), parts_.fetch_units_max, context.account());
}

Status DiskBlockCache::wait_for(const RequestContext& context, CachedObject& object,
                                const std::vector<std::shared_ptr<Flight>>& flights) {
  for (const std::shared_ptr<Flight>& flight : flights) {
    Waiter<bool> landed;
    const auto answer = std::make_shared<FirstAnswer>(landed.completion());
    object.wait_for(flight, [answer](const Result<Slice>& data) {
      answer->give(data ? Status() : data.error());
    });
    const Cancellation::CallbackId id = context.cancellation().subscribe(
        [answer] { answer->give({StatusCode::kCancelled, "the request was cancelled"}); });
    const Result<bool> has_landed = landed.wait();
    context.cancellation().unsubscribe(id);
    if (!has_landed) return has_landed.error();
    Waiter<bool> ended;
    object.wait_for_end(flight, [done = ended.completion()]() mutable { done.complete(true); });
    MR_ASSIGN_OR_RETURN([[maybe_unused]] const bool has_ended, ended.wait());
    MR_RETURN_IF_ERROR(context.check(environment_.clock));
  }
  return {};
}

Result<CachedObject::Needs> DiskBlockCache::fetch_missing(
    const RequestContext& context, const std::shared_ptr<CachedObject>& object, UnitRange units,
    Urgency urgency) {
  const bool is_ahead = urgency == Urgency::kSpeculative;
  const ByteRange bytes = bytes_of(units, object->version().size());
  for (;;) {
    CachedObject::Needs needs = is_ahead ? object->prepare_ahead(units, parts_.fetch_units_max)
                                         : object->prepare(bytes, parts_.fetch_units_max, false);
    filler_.start(object, needs.new_ones, context.account());
    Status status = wait_for(context, *object, needs.flights);
    if (status.ok()) return needs;
    // Enough is fetched ahead already, for whomever: its turn comes.
    if (!is_ahead || status.code() != StatusCode::kResourceExhausted) {
      return failure(std::move(status));
    }
    environment_.clock.sleep_until(environment_.clock.now() + kRefusedPause,
                                   &context.cancellation());
    MR_RETURN_IF_ERROR(context.check(environment_.clock));
  }
}

Status DiskBlockCache::fetch(const RequestContext& context,
                             const std::shared_ptr<CachedObject>& object, UnitRange units,
                             Urgency urgency) {
  CachedObject::Needs needs;
  bool was_evicted = false;
  // What went once may have been found damaged by others meanwhile.
  for (int round = 0; round == 0 || (was_evicted && round < kEvictedRoundsMax); ++round) {
    MR_ASSIGN_OR_RETURN(needs, fetch_missing(context, object, units, urgency));
    const Verifier::Outcome checked = verifier_.check(*object, units, CacheDamage::kRead, false);
    if (object->all_ready(units)) return {};
    // Its end took the room of its beginning.
    was_evicted = checked.bad_units == 0 && std::ranges::none_of(needs.flights, [](const auto& f) {
                    return f->skipped.has_value();
                  });
  }
  const std::string& key = object->version().key().value();
  const bool had_no_room = std::ranges::any_of(
      needs.flights, [](const auto& flight) { return flight->skipped == CacheSkip::kNoRoom; });
  if (had_no_room || was_evicted) {
    return {StatusCode::kResourceExhausted,
            fmt::format("'{}' does not fit into the cache beside what is leased or in use", key)};
  }
  return {StatusCode::kUnavailable,
          fmt::format("'{}' was fetched, but the cache's disk does not keep it just now", key)};
}

Status DiskBlockCache::drop(const RequestContext& context, const ObjectVersion& object) {
  MR_RETURN_IF_ERROR(context.check(environment_.clock));
  return directories_.drop(object);
}

Result<CheckReport> DiskBlockCache::verify(const RequestContext& context,
                                           const ObjectVersion& object) {
  const std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  MR_RETURN_IF_ERROR(load(context, cached));
  CheckReport report{.objects = 1, .bytes = 0, .bad_units = 0};
  for (std::uint32_t first = 0; first < cached->units(); first += kBlockUnits) {
    MR_RETURN_IF_ERROR(context.check(environment_.clock));
    const UnitRange block{first, std::min(kBlockUnits, cached->units() - first)};
    const Verifier::Outcome outcome = verifier_.check(*cached, block, CacheDamage::kScrubbed, true);
    report.bytes += outcome.bytes;
    report.bad_units += outcome.bad_units;
  }
  return report;
}

Result<CheckReport> DiskBlockCache::scrub(const RequestContext& context,
                                          const ScrubOptions& options) {
  CheckReport report;
  const TimePoint start = environment_.clock.now();
  for (const auto& directory : directories_.all()) {
    for (const ObjectDigest& digest : directory->space().digests()) {
      const Result<ObjectVersion> object = directory->version_of(digest);
      if (!object) {
        // What was evicted meanwhile is not there.
        if (object.error().code() == StatusCode::kCorruption) {
          directories_.discard(*directory, digest, object.error());
          ++report.bad_units;
        }
        continue;
      }
      MR_ASSIGN_OR_RETURN(const CheckReport part, verify(context, *object));
      ++report.objects;
      report.bytes += part.bytes;
      report.bad_units += part.bad_units;
      scrubbed_bytes_.add(part.bytes);
      if (options.bytes_per_second_max == 0) continue;
      const std::chrono::duration<double> due(static_cast<double>(report.bytes) /
                                              static_cast<double>(options.bytes_per_second_max));
      environment_.clock.sleep_until(start + std::chrono::duration_cast<Duration>(due),
                                     &context.cancellation());
    }
  }
  return report;
}

Result<std::uint64_t> DiskBlockCache::cached_bytes(const RequestContext& context,
                                                   const ObjectVersion& object, ByteRange range) {
  if (range.offset >= object.size() || range.empty()) return 0;
  range.length = std::min(range.length, object.size() - range.offset);
  const std::shared_ptr<CachedObject> cached = objects_.find_or_add(object);
  MR_RETURN_IF_ERROR(load(context, cached));
  std::uint64_t bytes = 0;
  for (const UnitRange units : cached->on_disk(units_of(range), true)) {
    const ByteRange there = bytes_of(units, object.size());
    bytes += std::min(there.end(), range.end()) - std::max(there.offset, range.offset);
  }
  return bytes;
}

CacheUsage DiskBlockCache::usage() {
  CacheUsage usage;
  for (const auto& directory : directories_.all()) {
    usage.used_bytes += directory->space().used_bytes();
    usage.limit_bytes += directory->space().limit_bytes();
    usage.leased_bytes += directory->space().held_bytes();
  }
  usage.scanned = scanned_;
  return usage;
}

}  // namespace millrace
