#include "base/buffer_pool.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/page_memory.h"
#include "base/thread_stripe.h"
#include "base/units.h"

namespace millrace {

namespace {

constexpr std::size_t kClassBytesMin = 4 * kKiB;
constexpr std::size_t kClasses = 40;  // Up to 2 PiB: more than any ceiling.
constexpr std::size_t kSizeMax = kClassBytesMin << (kClasses - 1);

// Small buffers that a thread has freed are parked beside it, with all that they hold: the next one
// of its size costs neither a lock nor a counter that other threads use.
constexpr std::size_t kParkingPlaces = 16;
constexpr std::size_t kParkedClasses = 5;  // Up to 64 KiB.
// How much of what may be idle may be parked, in one place.
constexpr std::uint64_t kParkedShare = 4 * kParkingPlaces;

std::size_t class_index(std::size_t size) {
  return static_cast<std::size_t>(std::bit_width((size - 1) / kClassBytesMin));
}

std::size_t class_bytes(std::size_t index) { return kClassBytesMin << index; }

// What a request is charged. Sizes beyond every class stay as they are; no ceiling grants them.
std::size_t charge(std::size_t size) {
  return size > kSizeMax ? size : class_bytes(class_index(size));
}

// Memory that leaves the pool, collected under the lock and freed after it.
class Leaving {
 public:
  Leaving() = default;
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() {
    for (const auto& [pages, bytes] : pages_)
      free_pages(pages, bytes);
  }
  void add(std::byte* pages, std::size_t bytes) { pages_.emplace_back(pages, bytes); }

 private:
  std::vector<std::pair<std::byte*, std::size_t>> pages_;
};

}  // namespace

// What a buffer that is handed out holds, besides its memory.
struct BufferPool::Holding {
  std::shared_ptr<State> state;
  std::size_t index = 0;
  Limiter::Reservation reservation;

  // The last slice has gone.
  void operator()(std::byte* pages);
};

struct BufferPool::State {
  explicit State(BufferPoolOptions o)
      : options(o), limiter("buffer_pool", Limiter::Unit::kBytes, o.bytes_max) {}

  // Parked buffers count as handed out for everybody but those who ask for figures.
  struct Parked {
    std::byte* pages;
    Holding holding;
  };
  struct alignas(64) ParkingPlace {
    Mutex mutex;
    std::array<std::vector<Parked>, kParkedClasses> parked MR_GUARDED_BY(mutex);
    std::uint64_t bytes MR_GUARDED_BY(mutex) = 0;
  };
  // Nothing where it would not be enough for a buffer.
  std::uint64_t place_bytes_max() const {
    const std::uint64_t bytes = options.idle_bytes_max / kParkedShare;
    return bytes < kClassBytesMin ? 0 : bytes;
  }
  std::uint64_t idle_bytes_max() const {
    return options.idle_bytes_max - kParkingPlaces * place_bytes_max();
  }
  std::optional<Parked> unpark(std::size_t index);
  // False when there is no room, or somebody waits for memory: then nothing has happened.
  bool park(std::byte* pages, Holding& holding);
  // Gives back what is parked. True when that was something.
  bool empty_places();
  std::uint64_t parked_bytes();

  // An idle block of the class, or null. Counts the block as handed out either way, and makes room
  // for it among the idle ones.
  std::byte* take_idle(std::size_t index);
  void give_back(std::byte* pages, std::size_t index);
  // Frees idle memory, largest first, until at most `bytes` are left.
  void shrink_idle_to(std::uint64_t bytes, Leaving& leaving) MR_REQUIRES(mutex);

  const BufferPoolOptions options;
  Limiter limiter;
  std::array<ParkingPlace, kParkingPlaces> places;
  // Who waits for memory raises this before it empties the places, and who parks looks at it under
  // the place's lock: so nothing is parked that somebody waits for.
  std::atomic<std::uint32_t> no_parking = 0;

  mutable Mutex mutex;
  // Last in, first out: the block that was used last is the one that is still in the CPU's cache.
  std::array<std::vector<std::byte*>, kClasses> idle MR_GUARDED_BY(mutex);
  std::uint64_t idle_bytes MR_GUARDED_BY(mutex) = 0;
  // At most what is reserved, since a reservation is taken before and returned after.
  std::uint64_t handed_out_bytes MR_GUARDED_BY(mutex) = 0;
  bool closed MR_GUARDED_BY(mutex) = false;
};

std::byte* BufferPool::State::take_idle(std::size_t index) {
  Leaving leaving;
  MutexLock lock(mutex);
  handed_out_bytes += class_bytes(index);
  std::byte* pages = nullptr;
  if (!idle[index].empty()) {
    pages = idle[index].back();
    idle[index].pop_back();
    idle_bytes -= class_bytes(index);
  }
  shrink_idle_to(options.bytes_max - handed_out_bytes, leaving);
  lock.unlock();
  return pages;
}

void BufferPool::State::give_back(std::byte* pages, std::size_t index) {
  Leaving leaving;
  const std::size_t bytes = class_bytes(index);
  MutexLock lock(mutex);
  handed_out_bytes -= bytes;
  if (pages == nullptr) return;
  if (closed || bytes > idle_bytes_max()) {
    leaving.add(pages, bytes);
  } else {
    allow_access(pages, bytes, 0);
    shrink_idle_to(idle_bytes_max() - bytes, leaving);
    idle[index].push_back(pages);
    idle_bytes += bytes;
  }
  lock.unlock();
}

std::optional<BufferPool::State::Parked> BufferPool::State::unpark(std::size_t index) {
  if (index >= kParkedClasses || place_bytes_max() < class_bytes(index)) return std::nullopt;
  ParkingPlace& place = places[thread_stripe() % kParkingPlaces];
  MutexLock lock(place.mutex);
  std::vector<Parked>& parked = place.parked[index];
  if (parked.empty()) return std::nullopt;
  std::optional<Parked> taken = std::move(parked.back());
  parked.pop_back();
  place.bytes -= class_bytes(index);
  return taken;
}

bool BufferPool::State::park(std::byte* pages, Holding& holding) {
  const std::size_t index = holding.index;
  if (index >= kParkedClasses || place_bytes_max() < class_bytes(index)) return false;
  ParkingPlace& place = places[thread_stripe() % kParkingPlaces];
  MutexLock lock(place.mutex);
  if (no_parking != 0 || place.bytes + class_bytes(index) > place_bytes_max()) return false;
  allow_access(pages, class_bytes(index), 0);
  place.parked[index].push_back({pages, std::move(holding)});
  place.bytes += class_bytes(index);
  return true;
}

bool BufferPool::State::empty_places() {
  bool found = false;
  for (ParkingPlace& place : places) {
    std::array<std::vector<Parked>, kParkedClasses> leaving;
    {
      MutexLock lock(place.mutex);
      leaving.swap(place.parked);
      place.bytes = 0;
    }
    for (std::vector<Parked>& parked : leaving) {
      for (Parked& buffer : parked) {
        found = true;
        give_back(buffer.pages, buffer.holding.index);
      }
    }
  }
  return found;
}

std::uint64_t BufferPool::State::parked_bytes() {
  std::uint64_t bytes = 0;
  for (ParkingPlace& place : places) {
    MutexLock lock(place.mutex);
    bytes += place.bytes;
  }
  return bytes;
}

void BufferPool::Holding::operator()(std::byte* pages) {
  State& pool = *state;
  if (!pool.park(pages, *this)) pool.give_back(pages, index);
}

void BufferPool::State::shrink_idle_to(std::uint64_t bytes, Leaving& leaving) {
  for (std::size_t i = kClasses; i-- > 0 && idle_bytes > bytes;) {
    while (!idle[i].empty() && idle_bytes > bytes) {
      leaving.add(idle[i].back(), class_bytes(i));
      idle[i].pop_back();
      idle_bytes -= class_bytes(i);
    }
  }
}

BufferPool::BufferPool(BufferPoolOptions options) : state_(std::make_shared<State>(options)) {}

BufferPool::~BufferPool() {
  // Buffers that are still out keep the state; what they return from now on is freed.
  ++state_->no_parking;
  Leaving leaving;
  {
    MutexLock lock(state_->mutex);
    state_->closed = true;
    state_->shrink_idle_to(0, leaving);
  }
  state_->empty_places();
}

Result<Buffer> BufferPool::try_allocate(std::size_t size) {
  if (size == 0) return Buffer();
  if (std::optional<Buffer> parked = take_parked(size)) return *std::move(parked);
  auto reservation = state_->limiter.try_reserve(charge(size));
  if (!reservation && state_->empty_places()) {
    reservation = state_->limiter.try_reserve(charge(size));
  }
  if (!reservation) return failure(std::move(reservation).error());
  return take(size, *std::move(reservation));
}

Result<Buffer> BufferPool::allocate(const RequestContext& context, std::size_t size) {
  Result<Buffer> now = try_allocate(size);
  if (now || now.error().code() != StatusCode::kResourceExhausted) return now;
  ++state_->no_parking;
  state_->empty_places();
  Result<Limiter::Reservation> reservation = state_->limiter.reserve(context, charge(size));
  --state_->no_parking;
  if (!reservation) return failure(std::move(reservation).error());
  return take(size, *std::move(reservation));
}

std::optional<Buffer> BufferPool::take_parked(std::size_t size) {
  if (size > kSizeMax) return std::nullopt;
  const std::size_t index = class_index(size);
  std::optional<State::Parked> parked = state_->unpark(index);
  if (!parked) return std::nullopt;
  allow_access(parked->pages, class_bytes(index), size);
  return Buffer(std::shared_ptr<std::byte[]>(parked->pages, std::move(parked->holding)), size);
}

Result<Buffer> BufferPool::take(std::size_t size, Limiter::Reservation reservation) {
  const std::size_t index = class_index(size);
  const std::size_t bytes = class_bytes(index);
  std::byte* pages = state_->take_idle(index);
  if (pages == nullptr) pages = allocate_pages(bytes);
  if (pages == nullptr) {
    state_->give_back(nullptr, index);
    return failure(StatusCode::kResourceExhausted,
                   fmt::format("the system has no memory for a buffer of {}", format_size(bytes)));
  }
  allow_access(pages, bytes, size);
  return Buffer(std::shared_ptr<std::byte[]>(pages, Holding{state_, index, std::move(reservation)}),
                size);
}

std::uint64_t BufferPool::bytes_in_use() const {
  const std::uint64_t reserved = state_->limiter.in_use();
  return reserved - std::min(reserved, state_->parked_bytes());
}

std::uint64_t BufferPool::bytes_idle() const {
  const std::uint64_t parked = state_->parked_bytes();
  MutexLock lock(state_->mutex);
  return state_->idle_bytes + parked;
}

}  // namespace millrace
