#include "cache/cached_object.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace millrace {
namespace {

bool overlap(UnitRange a, UnitRange b) { return a.first < b.end() && b.first < a.end(); }

std::uint32_t piece_units(const FetchAhead& ahead, std::uint32_t fetch_units_max) {
  return std::min(static_cast<std::uint32_t>(ahead.piece_bytes / kUnitBytes), fetch_units_max);
}

// Packs are read by many at a time, so there is enough to ask for in large pieces.
ReadaheadOptions readahead_of(ObjectContent content, ReadaheadOptions options) {
  constexpr std::uint64_t kPackPiecesPerWindow = 16;
  if (content == ObjectContent::kManyFiles) options.pieces_per_window = kPackPiecesPerWindow;
  return options;
}

}  // namespace

CachedObject::CachedObject(ObjectVersion version, ReadaheadOptions readahead)
    : version_(std::move(version)),
      units_(unit_count(version_.size())),
      ready_(units_),
      touched_(std::make_unique<std::atomic<std::uint16_t>[]>(block_count(version_.size()))),
      on_disk_(units_),
      readahead_(readahead_of(version_.content(), readahead)),
      around_(readahead) {}

bool CachedObject::note_touch(std::uint32_t block, std::uint16_t tick) {
  std::atomic<std::uint16_t>& last = touched_[block];
  if (last.load(std::memory_order_relaxed) == tick) return false;
  return last.exchange(tick, std::memory_order_relaxed) != tick;
}

// ---- Loading

CachedObject::Load CachedObject::begin_load(Task& when_loaded) {
  MutexLock lock(mutex_);
  if (load_state_ == LoadState::kLoaded) return Load::kDone;
  waiting_for_load_.push_back(std::move(when_loaded));
  return std::exchange(load_state_, LoadState::kLoading) == LoadState::kUnloaded ? Load::kStarting
                                                                                 : Load::kRunning;
}

void CachedObject::loaded(std::unique_ptr<StoredObject> stored,
                          const std::vector<std::uint32_t>& recorded, bool handed_out) {
  std::vector<Task> waiting;
  {
    MutexLock lock(mutex_);
    assert(load_state_ == LoadState::kLoading);
    for (const std::uint32_t unit : recorded)
      on_disk_.set({unit, 1});
    stored_.store(stored.get(), std::memory_order_release);
    stored_owner_ = std::move(stored);
    handed_out_ |= handed_out;
    load_state_ = LoadState::kLoaded;
    waiting.swap(waiting_for_load_);
  }
  for (Task& task : waiting)
    task();
}

// ---- Reading

std::shared_ptr<Flight> CachedObject::flight_at(std::uint32_t unit) const {
  for (const std::shared_ptr<Flight>& flight : flights_) {
    if (unit >= flight->units.first && unit < flight->units.end()) return flight;
  }
  return nullptr;
}

bool CachedObject::flying(UnitRange units) const {
  return std::ranges::any_of(flights_,
                             [&](const auto& flight) { return overlap(flight->units, units); });
}

UnitRange CachedObject::pieces_around(UnitRange units) const {
  const std::uint32_t first = units.first / kPlannedPieceUnits * kPlannedPieceUnits;
  const std::uint32_t pieces = (units.end() - first + kPlannedPieceUnits - 1) / kPlannedPieceUnits;
  return {first, std::min(pieces * kPlannedPieceUnits, units_ - first)};
}

// A small object is fetched whole.
UnitRange CachedObject::fetched_with(UnitRange units) const {
  if (units.empty() || version_.size() > kSmallObjectBytesMax) return units;
  return {0, units_};
}

void CachedObject::add_flights(UnitRange units, std::uint32_t fetch_units_max, Urgency urgency,
                               std::vector<std::shared_ptr<Flight>>& into) {
  const UnitRange wanted = fetched_with(units);
  // A small object has no parts, whatever the largest fetch is.
  if (version_.size() <= kSmallObjectBytesMax) fetch_units_max = std::max(fetch_units_max, units_);
  std::uint32_t first = wanted.first;
  while (first < wanted.end()) {
    if (on_disk_.test(first) || flight_at(first)) {
      ++first;
      continue;
    }
    // Flights end at multiples of the largest size, so that streams fetch whole blocks.
    const std::uint32_t limit =
        std::min(wanted.end(), (first / fetch_units_max + 1) * fetch_units_max);
    std::uint32_t end = first + 1;
    while (end < limit && !on_disk_.test(end) && !flight_at(end))
      ++end;
    auto flight = std::make_shared<Flight>(UnitRange{first, end - first});
    flight->urgency = urgency;
    flight->is_ahead = urgency == Urgency::kSpeculative && !planned();
    flights_.push_back(flight);
    into.push_back(std::move(flight));
    first = end;
  }
}

CachedObject::Needs CachedObject::prepare(ByteRange read, std::uint32_t fetch_units_max,
                                          bool speculate) {
  Needs needs;
  const UnitRange units = units_of(read);
  MutexLock lock(mutex_);
  assert(load_state_ == LoadState::kLoaded);
  // First, so that the read and what is around it come in one request.
  if (speculate && !planned() && !on_disk_.all(units))
    add_flights_around(read, fetch_units_max, needs.new_ones);
  if (planned_fetches() == PlannedFetches::kPieces) {
    // What is around it will be wanted as well.
    add_flights(pieces_around(units), std::min(fetch_units_max, kPlannedPieceUnits),
                Urgency::kDemanded, needs.new_ones);
  } else {
    add_flights(units, fetch_units_max, Urgency::kDemanded, needs.new_ones);
  }
  for (const std::shared_ptr<Flight>& flight : flights_) {
    if (!overlap(flight->units, units)) continue;
    flight->is_passed |= !planned() && flight->units.end() <= units.end();
    if (std::exchange(flight->urgency, Urgency::kDemanded) == Urgency::kSpeculative) {
      needs.promoted.push_back(flight->ticket);
    }
    needs.flights.push_back(flight);
  }
  for (std::uint32_t unit = units.first; unit < units.end(); ++unit) {
    if (!on_disk_.test(unit) || ready_.test(unit)) continue;
    if (!needs.unchecked.empty() && needs.unchecked.back().end() == unit) {
      ++needs.unchecked.back().count;
    } else {
      needs.unchecked.push_back({unit, 1});
    }
  }
  if (speculate && !planned()) {
    add_flights_ahead(read, fetch_units_max, needs.new_ones);
  }
  return needs;
}

std::vector<std::shared_ptr<Flight>> CachedObject::prefetch(UnitRange units,
                                                            std::uint32_t fetch_units_max) {
  std::vector<std::shared_ptr<Flight>> flights;
  MutexLock lock(mutex_);
  add_flights(units, fetch_units_max, Urgency::kSpeculative, flights);
  return flights;
}

CachedObject::Needs CachedObject::prepare_ahead(UnitRange units, std::uint32_t fetch_units_max) {
  Needs needs;
  MutexLock lock(mutex_);
  add_flights(units, fetch_units_max, Urgency::kSpeculative, needs.new_ones);
  // Their reader comes too late to find them in memory.
  for (const std::shared_ptr<Flight>& flight : needs.new_ones)
    flight->is_ahead = false;
  for (const std::shared_ptr<Flight>& flight : flights_) {
    if (overlap(flight->units, units)) needs.flights.push_back(flight);
  }
  return needs;
}

std::vector<std::shared_ptr<Flight>> CachedObject::note_warm_read(ByteRange read,
                                                                  std::uint32_t fetch_units_max) {
  std::vector<std::shared_ptr<Flight>> flights;
  MutexLock lock(mutex_);
  if (planned()) return flights;
  add_flights_ahead(read, fetch_units_max, flights);
  return flights;
}

void CachedObject::add_flights_ahead(ByteRange read, std::uint32_t fetch_units_max,
                                     std::vector<std::shared_ptr<Flight>>& into) {
  const FetchAhead ahead = readahead_.note_read(read, version_.size());
  if (ahead.empty()) return;
  add_flights(units_of(ahead.bytes), piece_units(ahead, fetch_units_max), Urgency::kSpeculative,
              into);
}

void CachedObject::add_flights_around(ByteRange read, std::uint32_t fetch_units_max,
                                      std::vector<std::shared_ptr<Flight>>& into) {
  if (version_.content() != ObjectContent::kManyFiles) return;
  const ByteRange around = around_.note_miss(read, version_.size());
  if (around.empty()) return;
  add_flights(units_of(around), fetch_units_max, Urgency::kSpeculative, into);
}

void CachedObject::wait_for(const std::shared_ptr<Flight>& flight, Flight::Waiter waiter) {
  MutexLock lock(mutex_);
  if (!flight->outcome) {
    flight->waiters.push_back(std::move(waiter));
    return;
  }
  Result<Slice> outcome = *flight->outcome;
  lock.unlock();
  waiter(std::move(outcome));
}

void CachedObject::wait_for_end(const std::shared_ptr<Flight>& flight, Task waiter) {
  {
    MutexLock lock(mutex_);
    if (std::ranges::find(flights_, flight) != flights_.end()) {
      flight->waiters_for_end.push_back(std::move(waiter));
      return;
    }
  }
  waiter();
}

void CachedObject::land(Flight& flight, const Slice& data) {
  std::vector<Flight::Waiter> waiters;
  {
    MutexLock lock(mutex_);
    flight.outcome = data;
    waiters.swap(flight.waiters);
  }
  for (Flight::Waiter& waiter : waiters)
    waiter(data);
}

void CachedObject::fail(const std::shared_ptr<Flight>& flight, const Status& why) {
  std::vector<Flight::Waiter> waiters;
  std::vector<Task> ended;
  {
    MutexLock lock(mutex_);
    flight->outcome = failure(why);
    ended = remove(*flight);
    // Refused because enough is under way: the stream comes back for it.
    if (flight->urgency == Urgency::kSpeculative && why == StatusCode::kResourceExhausted) {
      readahead_.retract(bytes_of(flight->units, version_.size()));
    }
    waiters.swap(flight->waiters);
  }
  for (Flight::Waiter& waiter : waiters)
    waiter(failure(why));
  for (Task& task : ended)
    task();
}

Urgency CachedObject::urgency(const Flight& flight) {
  MutexLock lock(mutex_);
  return flight.urgency;
}

Urgency CachedObject::submitted(Flight& flight, FetchQueue::Ticket ticket) {
  MutexLock lock(mutex_);
  flight.ticket = std::move(ticket);
  return flight.urgency;
}

Result<StoredObject*> CachedObject::create(
    const std::function<Result<std::unique_ptr<StoredObject>>()>& make) {
  MutexLock creating(create_mutex_);
  if (StoredObject* const there = stored()) return there;
  MR_ASSIGN_OR_RETURN(std::unique_ptr<StoredObject> made, make());
  MutexLock lock(mutex_);
  stored_owner_ = std::move(made);
  stored_.store(stored_owner_.get(), std::memory_order_release);
  return stored_owner_.get();
}

bool CachedObject::may_write(const Flight& flight) {
  MutexLock lock(mutex_);
  return !removed_ && std::ranges::none_of(being_freed_, [&](UnitRange freed) {
    return overlap(freed, flight.units);
  });
}

void CachedObject::retire(const std::shared_ptr<Flight>& flight, std::optional<CacheSkip> skipped) {
  std::vector<Task> ended;
  {
    MutexLock lock(mutex_);
    flight->skipped = skipped;
    if (!skipped) {
      on_disk_.set(flight->units);
      ready_units_.fetch_add(ready_.set(flight->units), std::memory_order_relaxed);
    }
    // What nobody comes for would take the room of what somebody does.
    if (flight->is_passed) erase_fresh(flight->units);
    ended = remove(*flight);
  }
  for (Task& task : ended)
    task();
}

std::vector<Task> CachedObject::remove(Flight& flight) {
  std::erase_if(flights_, [&](const auto& other) { return other.get() == &flight; });
  return std::exchange(flight.waiters_for_end, {});
}

// ---- Fresh bytes

void CachedObject::add_fresh(FreshPiece piece) {
  MutexLock lock(mutex_);
  fresh_.push_back(std::move(piece));
  fresh_pieces_.store(fresh_.size(), std::memory_order_relaxed);
}

void CachedObject::drop_fresh(UnitRange units) {
  MutexLock lock(mutex_);
  erase_fresh(units);
}

void CachedObject::erase_fresh(UnitRange units) {
  std::erase_if(fresh_, [&](const FreshPiece& piece) { return piece.units == units; });
  fresh_pieces_.store(fresh_.size(), std::memory_order_relaxed);
}

std::vector<Slice> CachedObject::fresh(ByteRange range) {
  std::vector<Slice> parts;
  std::uint64_t at = range.offset;
  MutexLock lock(mutex_);
  for (bool found = true; found && at < range.end();) {
    found = false;
    for (const FreshPiece& piece : fresh_) {
      const ByteRange bytes = bytes_of(piece.units, version_.size());
      if (bytes.offset > at || bytes.end() <= at) continue;
      parts.push_back(piece.data.part(at - bytes.offset, range.end() - at));
      at = std::min(bytes.end(), range.end());
      found = true;
      break;
    }
  }
  if (at < range.end()) return {};
  std::erase_if(fresh_, [&](const FreshPiece& piece) {
    const ByteRange bytes = bytes_of(piece.units, version_.size());
    return bytes.end() > range.offset && bytes.end() <= range.end();
  });
  fresh_pieces_.store(fresh_.size(), std::memory_order_relaxed);
  return parts;
}

// ---- Checking

void CachedObject::verified(UnitRange units, std::uint64_t generation) {
  MutexLock lock(mutex_);
  if (generation_.load(std::memory_order_relaxed) != generation) return;
  // The generation may have been read after these units went, and before their space was freed.
  for (std::uint32_t unit = units.first; unit < units.end(); ++unit) {
    if (!on_disk_.test(unit)) continue;
    ready_units_.fetch_add(ready_.set({unit, 1}), std::memory_order_relaxed);
  }
}

bool CachedObject::begin_distrust(UnitRange units) {
  MutexLock lock(mutex_);
  if (removed_ || on_disk_.clear(units) == 0) return false;
  ready_units_.fetch_sub(ready_.clear(units), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_acq_rel);
  being_freed_.push_back(units);
  return true;
}

std::vector<UnitRange> CachedObject::on_disk(UnitRange within, bool ready_too) {
  std::vector<UnitRange> runs;
  MutexLock lock(mutex_);
  for (std::uint32_t unit = within.first; unit < within.end(); ++unit) {
    if (!on_disk_.test(unit) || (!ready_too && ready_.test(unit))) continue;
    if (!runs.empty() && runs.back().end() == unit) {
      ++runs.back().count;
    } else {
      runs.push_back({unit, 1});
    }
  }
  return runs;
}

bool CachedObject::all_on_disk() {
  MutexLock lock(mutex_);
  return on_disk_.all({0, units_});
}

// ---- Freeing

CachedObject::Freeing CachedObject::begin_freeing(UnitRange units) {
  MutexLock lock(mutex_);
  const bool busy =
      std::ranges::any_of(being_freed_, [&](UnitRange freed) { return overlap(freed, units); });
  if (busy || removed_ || handed_out_ || flying(units)) return Freeing::kBusy;
  ready_units_.fetch_sub(ready_.clear(units), std::memory_order_relaxed);
  if (on_disk_.clear(units) == 0) return Freeing::kNothing;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  being_freed_.push_back(units);
  return Freeing::kStarted;
}

void CachedObject::freed(UnitRange units) {
  MutexLock lock(mutex_);
  std::erase(being_freed_, units);
}

std::optional<std::uint64_t> CachedObject::begin_removal() {
  MutexLock lock(mutex_);
  if (removed_ || !flights_.empty() || !being_freed_.empty() ||
      load_state_ == LoadState::kLoading) {
    return std::nullopt;
  }
  removed_ = true;
  // Its space may be freed at any moment: nobody looks for it on the disk any more.
  load_state_ = LoadState::kLoaded;
  const UnitRange all{0, units_};
  ready_.clear(all);
  ready_units_.store(0, std::memory_order_relaxed);
  const std::uint64_t padding =
      units_ > 0 && on_disk_.test(units_ - 1) ? units_ * kUnitBytes - version_.size() : 0;
  const std::uint64_t bytes = on_disk_.clear(all) * kUnitBytes - padding;
  generation_.fetch_add(1, std::memory_order_acq_rel);
  if (holders_ > 0) unlinked_bytes_ = bytes;
  return unlinked_bytes_;
}

void CachedObject::add_holder() {
  MutexLock lock(mutex_);
  handed_out_ = true;
  ++holders_;
}

std::uint64_t CachedObject::drop_holder() {
  MutexLock lock(mutex_);
  assert(holders_ > 0);
  return --holders_ == 0 ? std::exchange(unlinked_bytes_, 0) : 0;
}

bool CachedObject::goes_whole() {
  MutexLock lock(mutex_);
  return handed_out_ || version_.size() <= kSmallObjectBytesMax;
}

}  // namespace millrace
