#include "base/buffer_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/mutex.h"
#include "base/page_memory.h"
#include "base/units.h"

namespace millrace {

namespace {

constexpr std::size_t kClassBytesMin = 4 * kKiB;
constexpr std::size_t kClasses = 40;  // Up to 2 PiB: more than any ceiling.
constexpr std::size_t kSizeMax = kClassBytesMin << (kClasses - 1);

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

struct BufferPool::State {
  explicit State(BufferPoolOptions o)
      : options(o), limiter("buffer_pool", Limiter::Unit::kBytes, o.bytes_max) {}

  // An idle block of the class, or null. Counts the block as handed out either way, and makes room
  // for it among the idle ones.
  std::byte* take_idle(std::size_t index);
  void give_back(std::byte* pages, std::size_t index);
  // Frees idle memory, largest first, until at most `bytes` are left.
  void shrink_idle_to(std::uint64_t bytes, Leaving& leaving) MR_REQUIRES(mutex);

  const BufferPoolOptions options;
  Limiter limiter;

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
  if (closed || bytes > options.idle_bytes_max) {
    leaving.add(pages, bytes);
  } else {
    allow_access(pages, bytes, 0);
    shrink_idle_to(options.idle_bytes_max - bytes, leaving);
    idle[index].push_back(pages);
    idle_bytes += bytes;
  }
  lock.unlock();
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
  Leaving leaving;
  MutexLock lock(state_->mutex);
  state_->closed = true;
  state_->shrink_idle_to(0, leaving);
  lock.unlock();
}

Result<Buffer> BufferPool::try_allocate(std::size_t size) {
  if (size == 0) return Buffer();
  MR_ASSIGN_OR_RETURN(auto reservation, state_->limiter.try_reserve(charge(size)));
  return take(state_, size, std::move(reservation));
}

Result<Buffer> BufferPool::allocate(const RequestContext& context, std::size_t size) {
  if (size == 0) return Buffer();
  MR_ASSIGN_OR_RETURN(auto reservation, state_->limiter.reserve(context, charge(size)));
  return take(state_, size, std::move(reservation));
}

Result<Buffer> BufferPool::take(const std::shared_ptr<State>& state, std::size_t size,
                                Limiter::Reservation reservation) {
  const std::size_t index = class_index(size);
  const std::size_t bytes = class_bytes(index);
  std::byte* pages = state->take_idle(index);
  if (pages == nullptr) pages = allocate_pages(bytes);
  if (pages == nullptr) {
    state->give_back(nullptr, index);
    return failure(StatusCode::kResourceExhausted,
                   fmt::format("the system has no memory for a buffer of {}", format_size(bytes)));
  }
  allow_access(pages, bytes, size);
  auto give_back = [state, index, held = std::move(reservation)](std::byte* p) {
    state->give_back(p, index);
  };
  return Buffer(std::shared_ptr<std::byte[]>(pages, std::move(give_back)), size);
}

std::uint64_t BufferPool::bytes_in_use() const { return state_->limiter.in_use(); }

std::uint64_t BufferPool::bytes_idle() const {
  MutexLock lock(state_->mutex);
  return state_->idle_bytes;
}

}  // namespace millrace
