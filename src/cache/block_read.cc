#include "cache/block_read.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <utility>

#include "objectstore/paused_call.h"

namespace millrace {
namespace {

// A read that is sent back this often meets an eviction at every turn: the cache is far too small.
constexpr std::uint32_t kRoundsMax = 64;
constexpr Duration kMemoryRetryPause = std::chrono::milliseconds(2);
constexpr std::uint32_t kPausesPerLetGo = 8;

template <class T>
void append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

void copy_overlap(ByteRange from_at, ByteView from, ByteRange into_at, MutableByteView into) {
  const std::uint64_t begin = std::max(from_at.offset, into_at.offset);
  const std::uint64_t end = std::min(from_at.end(), into_at.end());
  if (begin >= end) return;
  std::memcpy(into.data() + (begin - into_at.offset), from.data() + (begin - from_at.offset),
              end - begin);
}

}  // namespace

bool ensure_loaded(const ReadParts& parts, const std::shared_ptr<CachedObject>& object,
                   Task when_loaded) {
  switch (object->begin_load(when_loaded)) {
    case CachedObject::Load::kDone:
      return true;
    case CachedObject::Load::kRunning:
      return false;
    case CachedObject::Load::kStarting:
      break;
  }
  parts.disk.resume([&parts, object, pass = parts.gate.enter()] {
    CacheDirectory::Loaded loaded =
        parts.directories.of(object->version().digest()).load(object->version());
    object->loaded(std::move(loaded.stored), loaded.recorded, loaded.handed_out);
  });
  return false;
}

void fetch_ahead(const ReadParts& parts, const std::shared_ptr<CachedObject>& object,
                 UnitRange units, std::uint32_t fetch_units_max,
                 const std::shared_ptr<FetchAccount>& account) {
  // A pass, because the object may be loaded when the cache is going.
  std::optional<Gate::Pass> pass = parts.gate.enter();
  if (!pass) return;
  auto fetch = [&parts, object, units, fetch_units_max, account, inside = std::move(*pass)] {
    parts.filler.start(object, object->prefetch(units, fetch_units_max), account);
  };
  auto shared = std::make_shared<decltype(fetch)>(std::move(fetch));
  if (ensure_loaded(parts, object, [shared] { (*shared)(); })) (*shared)();
}

void BlockRead::start(const ReadParts& parts, Gate::Pass pass, const RequestContext& context,
                      std::shared_ptr<CachedObject> object, ByteRange range,
                      Completion<Slice> done) {
  const auto read = std::make_shared<BlockRead>(parts, std::move(pass), context, std::move(object),
                                                range, std::move(done));
  read->watch_context();
  read->run();
}

BlockRead::BlockRead(const ReadParts& parts, Gate::Pass pass, const RequestContext& context,
                     std::shared_ptr<CachedObject> object, ByteRange range, Completion<Slice> done)
    : pass_(std::move(pass)),
      parts_(parts),
      context_(context),
      object_(std::move(object)),
      range_(range),
      done_(std::move(done)) {}

BlockRead::~BlockRead() {
  if (cancel_id_ != 0) context_.cancellation().unsubscribe(cancel_id_);
}

void BlockRead::watch_context() {
  cancel_id_ = context_.cancellation().subscribe([weak = weak_from_this()] {
    if (const auto read = weak.lock()) {
      read->finish(failure(StatusCode::kCancelled, "the read was cancelled"));
    }
  });
  if (!context_.has_deadline()) return;
  deadline_ = parts_.clock.schedule(context_.deadline(), parts_.disk, [weak = weak_from_this()] {
    if (const auto read = weak.lock()) {
      read->finish(
          failure(StatusCode::kDeadlineExceeded, "the read was not answered before its deadline"));
    }
  });
}

void BlockRead::finish(Result<Slice> result) {
  if (answered_.exchange(true)) return;
  if (result) {
    const auto source = static_cast<std::size_t>(source_);
    parts_.metrics.counter(MetricId::kCacheReads, {source}).add();
    parts_.metrics.counter(MetricId::kCacheReadBytes, {source}).add(result->size());
  }
  done_.complete(std::move(result));
}

void BlockRead::run() {
  if (answered_.load()) return;
  if (ensure_loaded(parts_, object_, [self = shared_from_this()] { self->prepare(); })) prepare();
}

void BlockRead::prepare() {
  CachedObject::Needs needs;
  const bool speculate = !std::exchange(prepared_, true) && !context_.has_plan();
  for (const ByteRange gap : gaps()) {
    CachedObject::Needs more = object_->prepare(gap, parts_.fetch_units_max, speculate);
    append(needs.flights, std::move(more.flights));
    append(needs.new_ones, std::move(more.new_ones));
    append(needs.promoted, std::move(more.promoted));
    append(needs.unchecked, std::move(more.unchecked));
  }
  if (!needs.new_ones.empty()) source_ = CacheSource::kStore;
  if (!needs.flights.empty() && source_ == CacheSource::kDisk) source_ = CacheSource::kMemory;
  parts_.filler.start(object_, needs.new_ones, context_.account());
  for (const FetchQueue::Ticket& ticket : needs.promoted)
    parts_.fetches.promote(ticket);
  if (needs.unchecked.empty()) {
    gather(needs.flights);
    return;
  }
  parts_.disk.resume([self = shared_from_this(), needs = std::move(needs)] {
    for (const UnitRange units : needs.unchecked)
      self->parts_.verifier.check(*self->object_, units, CacheDamage::kRead, false);
    self->gather(needs.flights);
  });
}

void BlockRead::gather(const std::vector<std::shared_ptr<Flight>>& flights) {
  {
    MutexLock lock(mutex_);
    awaited_ = flights.size();
  }
  if (flights.empty()) {
    assemble();
    return;
  }
  for (const std::shared_ptr<Flight>& flight : flights) {
    object_->wait_for(flight, [self = shared_from_this(), units = flight->units](
                                  Result<Slice> data) { self->delivered(units, std::move(data)); });
  }
}

void BlockRead::delivered(UnitRange units, Result<Slice> data) {
  Status failed;
  {
    MutexLock lock(mutex_);
    if (data) {
      pieces_.push_back({units, *std::move(data)});
    } else {
      failure_ = std::move(data).error();
    }
    if (--awaited_ > 0) return;
    failed = failure_;
  }
  if (!failed.ok()) {
    finish(failure(std::move(failed)));
  } else {
    assemble();
  }
}

std::optional<Slice> BlockRead::one_piece() {
  MutexLock lock(mutex_);
  for (const Piece& piece : pieces_) {
    const ByteRange at = bytes_of(piece.units, object_->version().size());
    if (at.offset > range_.offset || at.end() < range_.end()) continue;
    Slice part = piece.data.part(range_.offset - at.offset, range_.length);
    if (range_.length == at.length || object_->shares(range_.length)) return part;
    // The copy is made at once where there is memory for it.
    Result<Buffer> buffer = parts_.buffers.try_allocate(range_.length);
    if (!buffer) return std::nullopt;
    std::ranges::copy(part.bytes(), buffer->bytes().begin());
    return std::move(*buffer).freeze();
  }
  return std::nullopt;
}

void BlockRead::assemble() {
  if (std::optional<Slice> answer = one_piece()) {
    finish(*std::move(answer));
    return;
  }
  parts_.disk.resume([self = shared_from_this()] { self->assemble_on_disk_thread(); });
}

void BlockRead::assemble_on_disk_thread() {
  if (answered_.load()) return;
  Result<Buffer> buffer = parts_.buffers.try_allocate(range_.length);
  if (!buffer) {
    if (buffer.error().code() != StatusCode::kResourceExhausted) {
      finish(failure(std::move(buffer).error()));
      return;
    }
    parts_.fresh.drop_all();
    // Others return memory soon, and the deadline is watched. If they wait for memory too, they
    // wait for what this read has fetched: it lets go of that, and reads it from the disk later.
    if (++pauses_ % kPausesPerLetGo == 0 && let_go_of_pieces()) {
      run();
      return;
    }
    pause_call(parts_.clock, parts_.disk, context_, parts_.clock.now() + kMemoryRetryPause,
               [self = shared_from_this()](Status status) {
                 if (status.ok()) {
                   self->assemble_on_disk_thread();
                 } else {
                   self->finish(failure(std::move(status)));
                 }
               });
    return;
  }
  const Result<bool> filled = fill(buffer->bytes());
  if (!filled) {
    finish(failure(filled.error()));
  } else if (*filled) {
    finish(std::move(*buffer).freeze());
  } else {
    // What has come is kept: a read of more than the cache holds evicts its own beginning, and
    // would never end.
    if (++rounds_ < kRoundsMax) return run();
    finish(
        failure(StatusCode::kResourceExhausted,
                "the cache evicts faster than this read can be put together; give it more space"));
  }
}

bool BlockRead::let_go_of_pieces() {
  MutexLock lock(mutex_);
  const std::vector<Piece> unused = std::exchange(pieces_, {});
  lock.unlock();
  return !unused.empty();
}

std::vector<BlockRead::Piece> BlockRead::pieces() {
  std::vector<Piece> pieces;
  {
    MutexLock lock(mutex_);
    pieces = pieces_;
  }
  std::ranges::sort(pieces, {}, [](const Piece& piece) { return piece.units.first; });
  return pieces;
}

std::vector<ByteRange> BlockRead::gaps() {
  std::vector<ByteRange> gaps;
  std::uint64_t at = range_.offset;
  const auto gap_until = [&](std::uint64_t end) {
    if (at < end) gaps.push_back({at, end - at});
  };
  for (const Piece& piece : pieces()) {
    const ByteRange bytes = bytes_of(piece.units, object_->version().size());
    gap_until(std::min(bytes.offset, range_.end()));
    at = std::max(at, bytes.end());
  }
  gap_until(range_.end());
  return gaps;
}

Result<bool> BlockRead::fill(MutableByteView into) {
  std::uint64_t at = range_.offset;
  const auto disk_until = [&](std::uint64_t end) -> Result<bool> {
    if (at >= end) return true;
    const ByteRange gap{at, end - at};
    return read_from_disk(gap, into.subspan(at - range_.offset, gap.length));
  };
  for (const Piece& piece : pieces()) {
    const ByteRange bytes = bytes_of(piece.units, object_->version().size());
    MR_ASSIGN_OR_RETURN(const bool there, disk_until(std::min(bytes.offset, range_.end())));
    if (!there) return false;
    copy_overlap(bytes, piece.data.bytes(), range_, into);
    at = std::max(at, bytes.end());
  }
  return disk_until(range_.end());
}

Result<bool> BlockRead::read_from_disk(ByteRange bytes, MutableByteView into) {
  const std::uint64_t generation = object_->generation();
  const UnitRange units = units_of(bytes);
  if (!object_->all_ready(units)) return false;
  const Result<std::size_t> size = object_->stored()->read(bytes.offset, into);
  if (object_->generation() != generation) return false;
  if (!size || *size != bytes.length) {
    // A disk that cannot read what it has is as bad as one that lost it.
    parts_.verifier.distrust(*object_, units, CacheDamage::kRead);
    return false;
  }
  return true;
}

}  // namespace millrace
