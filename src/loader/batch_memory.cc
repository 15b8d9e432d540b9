#include "loader/batch_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::size_t kPieceBytesMin = 64 * 1024;
// What a batch has of a sample besides its bytes, about: its place, its key, offsets in columns.
constexpr std::size_t kBytesBesideSample = 128;
constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Status no_memory(std::size_t bytes) {
  return {StatusCode::kResourceExhausted,
          fmt::format("the system has no memory for a batch of {} bytes", bytes)};
}

// Pieces come in few sizes, so that one fits many batches: four to each power of two.
std::size_t piece_bytes(std::size_t bytes) {
  const std::size_t floor = std::max(std::bit_floor(bytes), kPieceBytesMin);
  const std::size_t step = floor / 4;
  return std::max((bytes + step - 1) / step * step, kPieceBytesMin);
}

Result<std::byte*> map_shared(const File& file, std::size_t bytes) {
  void* const data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
  if (data == MAP_FAILED) return failure(no_memory(bytes));
  return static_cast<std::byte*>(data);
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

Result<std::unique_ptr<BatchMemory>> BatchMemory::make(std::size_t bytes) {
  const int descriptor = ::memfd_create("millrace-batch", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return failure(file_error(errno, "make memory", "for a batch"));
  File file = File::adopt(descriptor, "batch");
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor, F_ADD_SEALS, kSizeSeals) != 0) {
    return failure(no_memory(bytes));
  }
  MR_ASSIGN_OR_RETURN(std::byte* const data, map_shared(file, bytes));
  return std::unique_ptr<BatchMemory>(new BatchMemory(std::move(file), data, bytes));
}

Result<std::unique_ptr<BatchMemory>> BatchMemory::map(File file, std::size_t bytes) {
  const int seals = ::fcntl(file.descriptor(), F_GET_SEALS);
  MR_ASSIGN_OR_RETURN(const std::uint64_t size, file.size());
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || size < bytes || bytes == 0) {
    return failure(StatusCode::kInvalidArgument, "the memory of a batch is none that can be used");
  }
  MR_ASSIGN_OR_RETURN(std::byte* const data, map_shared(file, bytes));
  return std::unique_ptr<BatchMemory>(new BatchMemory(std::move(file), data, bytes));
}

BatchMemory::BatchMemory(File file, std::byte* data, std::size_t size)
    : number_(next_number()), file_(std::move(file)), data_(data), size_(size) {}

BatchMemory::~BatchMemory() { ::munmap(data_, size_); }

// Where it cannot be had at once, the first touch will say so.
void BatchMemory::populate() { (void)::madvise(data_, size_, MADV_POPULATE_WRITE); }

BatchMemoryPool::Idle::iterator BatchMemoryPool::find_idle(State& state, std::size_t wanted) {
  return std::ranges::find_if(state.idle, [wanted](const std::unique_ptr<BatchMemory>& piece) {
    return piece->size() >= wanted && piece->size() / 2 <= wanted;
  });
}

void BatchMemoryPool::prepare(std::size_t samples, std::size_t bytes) {
  const std::size_t wanted = piece_bytes(bytes + samples * kBytesBesideSample + kPieceBytesMin);
  {
    MutexLock lock(state_->mutex);
    if (find_idle(*state_, wanted) != state_->idle.end()) return;
  }
  auto made = BatchMemory::make(wanted);
  if (!made) return;  // Who takes it is told.
  (*made)->populate();
  put_back(state_, *std::move(made));
}

Result<std::shared_ptr<BatchMemory>> BatchMemoryPool::take(std::size_t bytes) {
  const std::size_t wanted = piece_bytes(bytes);
  std::unique_ptr<BatchMemory> piece;
  {
    MutexLock lock(state_->mutex);
    if (const auto found = find_idle(*state_, wanted); found != state_->idle.end()) {
      piece = std::move(*found);
      state_->idle.erase(found);
    }
  }
  if (piece == nullptr) {
    MR_ASSIGN_OR_RETURN(piece, BatchMemory::make(wanted));
  }
  piece->hand_out();
  return std::shared_ptr<BatchMemory>(piece.release(),
                                      [state = std::weak_ptr<State>(state_)](BatchMemory* memory) {
                                        put_back(state, std::unique_ptr<BatchMemory>(memory));
                                      });
}

void BatchMemoryPool::put_back(const std::weak_ptr<State>& state,
                               std::unique_ptr<BatchMemory> memory) {
  // Also since in a child the lock may be held for ever.
  if (!memory->is_reusable()) return;
  const std::shared_ptr<State> pool = state.lock();
  if (pool == nullptr) return;
  // Let go of outside the lock.
  std::unique_ptr<BatchMemory> oldest;
  MutexLock lock(pool->mutex);
  pool->idle.push_back(std::move(memory));
  if (pool->idle.size() <= kIdleMax) return;
  oldest = std::move(pool->idle.front());
  pool->idle.erase(pool->idle.begin());
}

}  // namespace millrace
