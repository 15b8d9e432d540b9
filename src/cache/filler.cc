#include "cache/filler.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"

namespace millrace {
namespace {

// Bytes that do not fit the manifest's checksums are fetched once more, on another connection.
constexpr std::uint32_t kFetchAttemptsMax = 2;

std::vector<std::uint32_t> checksums_of(const Slice& data) {
  std::vector<std::uint32_t> checksums;
  checksums.reserve(unit_count(data.size()));
  for (std::size_t at = 0; at < data.size(); at += kUnitBytes) {
    checksums.push_back(crc32c(data.part(at, kUnitBytes).bytes()));
  }
  return checksums;
}

// How many units are not what the manifest says; 0 when it says nothing.
std::uint32_t count_wrong(const ObjectVersion& version, UnitRange units,
                          const std::vector<std::uint32_t>& checksums) {
  if (version.checksums() == nullptr) return 0;
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < units.count; ++i) {
    if ((*version.checksums())[units.first + i] != checksums[i]) ++wrong;
  }
  return wrong;
}

}  // namespace

Filler::Filler(FetchQueue& fetches, CacheDirectories& directories, FreshBytes& fresh,
               Executor& disk, Metrics& metrics)
    : fetches_(fetches), directories_(directories), fresh_(fresh), disk_(disk), metrics_(metrics) {}

void Filler::add_store(const StoreId& id, std::shared_ptr<ObjectStore> store) {
  MutexLock lock(mutex_);
  stores_[id] = std::move(store);
}

std::shared_ptr<ObjectStore> Filler::store_of(const StoreId& id) {
  MutexLock lock(mutex_);
  const auto found = stores_.find(id);
  return found == stores_.end() ? nullptr : found->second;
}

void Filler::start(const ObjectPtr& object, const std::vector<FlightPtr>& flights,
                   const std::shared_ptr<FetchAccount>& account) {
  for (const FlightPtr& flight : flights) {
    flight->account = account;
    submit(object, flight);
  }
}

void Filler::submit(const ObjectPtr& object, const FlightPtr& flight) {
  const ObjectVersion& version = object->version();
  std::shared_ptr<ObjectStore> store = store_of(version.store());
  if (!store) {
    object->fail(flight, Status(StatusCode::kInvalidArgument,
                                fmt::format("the cache knows no store '{}'; it has '{}' from there",
                                            version.store().value(), version.key().value())));
    return;
  }
  const Urgency urgency = object->urgency(*flight);
  Result<FetchQueue::Ticket> ticket =
      fetches_.submit(urgency, std::move(store),
                      GetRequest{.key = version.key(),
                                 .range = bytes_of(flight->units, version.size()),
                                 .identity = version.identity()},
                      flight->attempts, [this, object, flight](Result<FetchQueue::Fetched> result) {
                        landed(object, flight, std::move(result));
                      });
  if (!ticket) {
    // A reader may have joined it while it was refused as a guess: then it is none.
    if (urgency == Urgency::kSpeculative && object->urgency(*flight) == Urgency::kDemanded) {
      submit(object, flight);
    } else {
      object->fail(flight, ticket.error());
    }
    return;
  }
  // Somebody may have begun to wait for it before it had a ticket.
  if (object->submitted(*flight, *ticket) != urgency) fetches_.promote(*ticket);
}

void Filler::landed(const ObjectPtr& object, const FlightPtr& flight,
                    Result<FetchQueue::Fetched> result) {
  if (!result) {
    object->fail(flight, result.error().with_context(
                             fmt::format("fetching '{}'", object->version().key().value())));
    return;
  }
  const Slice data = result->data();
  const auto urgency = static_cast<std::size_t>(object->urgency(*flight));
  metrics_.counter(MetricId::kCacheFetchedBytes, {urgency}).add(data.size());
  if (flight->account) flight->account->add_fetched(data.size());
  std::vector<std::uint32_t> checksums = checksums_of(data);
  if (const std::uint32_t wrong = count_wrong(object->version(), flight->units, checksums)) {
    metrics_.counter(MetricId::kCacheBadUnits, {static_cast<std::size_t>(CacheDamage::kFetched)})
        .add(wrong);
    log_error("bytes from the store do not fit the manifest",
              {{"store", object->version().store().value()},
               {"key", object->version().key().value()},
               {"first_unit", flight->units.first},
               {"wrong_units", wrong}});
    if (++flight->attempts < kFetchAttemptsMax) {
      submit(object, flight);
    } else {
      object->fail(flight, Status(StatusCode::kCorruption,
                                  fmt::format("the store's bytes of '{}' do not fit the checksums "
                                              "of its manifest",
                                              object->version().key().value())));
    }
    return;
  }
  object->land(*flight, data);
  std::optional<Gate::Pass> pass = writes_.enter();
  if (!pass) {
    object->retire(flight, CacheSkip::kBusy);
    return;
  }
  // The fetch goes along: its bytes count as in flight until they are written.
  disk_.resume([this, object, flight, checksums = std::move(checksums),
                fetched = std::move(*result),
                inside = std::move(*pass)] { write(object, flight, fetched.data(), checksums); });
}

void Filler::write(const ObjectPtr& object, const FlightPtr& flight, const Slice& data,
                   const std::vector<std::uint32_t>& checksums) {
  const std::optional<CacheSkip> skipped = keep(object, *flight, data, checksums);
  // Before it ends, so that its reader finds it in memory at any moment.
  if (!skipped && flight->is_ahead) fresh_.add(object, flight->units, data);
  object->retire(flight, skipped);
}

std::optional<CacheSkip> Filler::keep(const ObjectPtr& object, const Flight& flight,
                                      const Slice& data,
                                      const std::vector<std::uint32_t>& checksums) {
  const ObjectVersion& version = object->version();
  CacheDirectory& directory = directories_.of(version.digest());
  if (!directory.may_write()) {
    return skip(CacheSkip::kDiskFailure);
  }
  if (!object->may_write(flight)) {
    return skip(CacheSkip::kBusy);
  }
  const std::uint64_t room = CacheDirectory::room_for(version, flight.units);
  if (!directories_.make_room(directory, room)) {
    return skip(CacheSkip::kNoRoom);
  }
  StoredObject* stored = object->stored();
  Status status;
  if (stored == nullptr) {
    Result<StoredObject*> created = object->create([&] { return directory.create(version); });
    if (created) {
      stored = *created;
    } else {
      status = created.error();
    }
  }
  // Who shuffles comes back for the rest of what is fetched, within seconds.
  const WrittenPages pages = object->planned() ? WrittenPages::kFilled : WrittenPages::kPassedBy;
  if (stored != nullptr) status = stored->write(flight.units, data.bytes(), checksums, pages);
  if (!status.ok()) {
    directory.space().unreserve(room);
    directory.note_write_failure(status);
    // The disk is fuller than we thought: others write to it, and they come first.
    if (status.code() == StatusCode::kResourceExhausted) directories_.enforce_limit(directory);
    return skip(CacheSkip::kDiskFailure);
  }
  for (std::uint32_t first = flight.units.first; first < flight.units.end();) {
    const std::uint32_t block = first / kBlockUnits;
    const std::uint32_t end = std::min(flight.units.end(), (block + 1) * kBlockUnits);
    const std::uint64_t bytes = CacheDirectory::room_for(version, {first, end - first});
    directory.space().fill(version.digest(), block, static_cast<std::uint32_t>(bytes));
    first = end;
  }
  return std::nullopt;
}

CacheSkip Filler::skip(CacheSkip why) {
  metrics_.counter(MetricId::kCacheFillsSkipped, {static_cast<std::size_t>(why)}).add();
  return why;
}

}  // namespace millrace
