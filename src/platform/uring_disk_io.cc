#include "platform/uring_disk_io.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <system_error>

#include <fmt/format.h>

#include "platform/file.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::size_t kDepthMax = 16384;  // Half of the kernel's own limit.

Status refused(int error, std::string_view what) {
  return {StatusCode::kUnsupported, fmt::format("the kernel refuses io_uring ({}: {})", what,
                                                std::generic_category().message(error))};
}

}  // namespace

struct UringDiskIo::Operation {
  bool writes = false;
  std::shared_ptr<DiskFile> file;
  std::uint64_t offset = 0;
  // Of the caller. Never written through when `writes`.
  std::byte* memory = nullptr;
  std::size_t length = 0;
  std::size_t moved = 0;
  Completion<std::size_t> done;
};

Result<std::unique_ptr<UringDiskIo>> UringDiskIo::create(std::size_t depth, const Clock& clock) {
  if (depth == 0 || depth > kDepthMax) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("the depth of io_uring must be 1 to {}, not {}", kDepthMax, depth));
  }
  std::unique_ptr<UringDiskIo> engine(new UringDiskIo(depth, clock));
  // One entry more than operations: the one that stops the reaper.
  const auto entries = static_cast<unsigned>(std::bit_ceil(depth + 1));
  if (const int error = io_uring_queue_init(entries, &engine->ring_, 0); error != 0) {
    engine->ring_.ring_fd = -1;
    return failure(refused(-error, "io_uring_setup"));
  }
  // Kernels before 5.6 have rings without plain reads and writes.
  io_uring_probe* probe = io_uring_get_probe_ring(&engine->ring_);
  const bool usable = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                      io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
  if (probe != nullptr) io_uring_free_probe(probe);
  if (!usable) return failure(refused(ENOSYS, "plain reads and writes"));
  engine->reaper_ = std::thread([raw = engine.get()] { raw->reap(); });
  ::pthread_setname_np(engine->reaper_.native_handle(), "disk-uring");
  return engine;
}

UringDiskIo::~UringDiskIo() {
  if (reaper_.joinable()) {
    wake_reaper_to_stop();
    reaper_.join();
  }
  if (ring_.ring_fd >= 0) io_uring_queue_exit(&ring_);
}

void UringDiskIo::wake_reaper_to_stop() {
  MutexLock lock(mutex_);
  stopping_ = true;
  while (in_flight_ > 0)
    idle_.wait(mutex_);
  // With nothing in flight the queue is empty, so there is an entry, and nothing that could refuse.
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  assert(entry != nullptr);
  io_uring_prep_nop(entry);
  io_uring_sqe_set_data(entry, this);
  const Status status = flush(entry);
  assert(status.ok());
  (void)status;
}

void UringDiskIo::read(const RequestContext& context, std::shared_ptr<DiskFile> file,
                       std::uint64_t offset, MutableByteView into, Completion<std::size_t> done) {
  start(context, std::make_unique<Operation>(false, std::move(file), offset, into.data(),
                                             into.size(), 0, std::move(done)));
}

void UringDiskIo::write(const RequestContext& context, std::shared_ptr<DiskFile> file,
                        std::uint64_t offset, ByteView from, Completion<std::size_t> done) {
  start(context, std::make_unique<Operation>(true, std::move(file), offset,
                                             const_cast<std::byte*>(from.data()), from.size(), 0,
                                             std::move(done)));
}

std::size_t UringDiskIo::in_flight() const {
  MutexLock lock(mutex_);
  return in_flight_;
}

void UringDiskIo::start(const RequestContext& context, std::unique_ptr<Operation> operation) {
  Status status = context.check(clock_);
  if (status.ok() && !operation->file->descriptor().has_value()) {
    status = Status(StatusCode::kUnsupported,
                    fmt::format("io_uring needs a file of the kernel, which '{}' is not",
                                operation->file->path()));
  }
  if (status.ok() &&
      operation->offset > static_cast<std::uint64_t>(INT64_MAX) - operation->length) {
    status = Status(StatusCode::kInvalidArgument,
                    fmt::format("offset {} is beyond what a file can hold ('{}')",
                                operation->offset, operation->file->path()));
  }
  // An empty transfer has nothing to ask the kernel, as in the threaded engine.
  const bool empty = operation->length == 0;
  if (status.ok() && !empty) {
    MutexLock lock(mutex_);
    if (stopping_) {
      status = Status(StatusCode::kCancelled, "disk I/O is shutting down");
    } else if (in_flight_ >= depth_) {
      status = Status(StatusCode::kResourceExhausted,
                      fmt::format("{} disk operations are in flight already", depth_));
    } else {
      ++in_flight_;
      status = submit(operation);
      if (status.ok()) return;
      --in_flight_;
      if (in_flight_ == 0) idle_.notify_all();
    }
  }
  operation->file.reset();
  operation->done.complete(status.ok() ? Result<std::size_t>(0) : failure(std::move(status)));
}

Status UringDiskIo::submit(std::unique_ptr<Operation>& operation) {
  io_uring_sqe* entry = io_uring_get_sqe(&ring_);
  // Every submission is flushed at once, so an entry is always free.
  assert(entry != nullptr);
  const int descriptor = *operation->file->descriptor();
  const auto length =
      static_cast<unsigned>(std::min(operation->length - operation->moved, kTransferBytesMax));
  std::byte* memory = operation->memory + operation->moved;
  const std::uint64_t offset = operation->offset + operation->moved;
  if (operation->writes) {
    io_uring_prep_write(entry, descriptor, memory, length, offset);
  } else {
    io_uring_prep_read(entry, descriptor, memory, length, offset);
  }
  io_uring_sqe_set_data(entry, operation.get());
  MR_RETURN_IF_ERROR(flush(entry).with_context(operation->file->path()));
  (void)operation.release();  // The reaper takes it back by the entry's data.
  return {};
}

Status UringDiskIo::flush(io_uring_sqe* entry) {
  int result = 0;
  do {
    result = io_uring_submit(&ring_);
  } while (result == -EINTR || result == -EAGAIN || result == -EBUSY);
  if (result >= 0) return {};
  // The entry is still queued and would go out with the next one, after its owner was told of the
  // failure: make it harmless.
  io_uring_prep_nop(entry);
  io_uring_sqe_set_data(entry, nullptr);
  return file_error(-result, "submit to", "io_uring");
}

void UringDiskIo::reap() {
  for (;;) {
    io_uring_cqe* answer = nullptr;
    const int error = io_uring_wait_cqe(&ring_, &answer);
    if (error == -EINTR || error == -EAGAIN) continue;
    assert(error == 0);
    void* data = io_uring_cqe_get_data(answer);
    const int result = answer->res;
    io_uring_cqe_seen(&ring_, answer);
    if (data == this) return;
    if (data == nullptr) continue;
    advance(std::unique_ptr<Operation>(static_cast<Operation*>(data)), result);
  }
}

void UringDiskIo::advance(std::unique_ptr<Operation> operation, int result) {
  {
    // Orders what the submitter wrote into the operation before what is read here; the way through
    // the kernel does, but no tool can see it.
    MutexLock lock(mutex_);
    const bool repeat = result == -EINTR || result == -EAGAIN;
    if (result > 0) operation->moved += static_cast<std::size_t>(result);
    if (repeat || (result > 0 && operation->moved < operation->length)) {
      Status status = submit(operation);
      if (status.ok()) return;
      lock.unlock();
      return finish(std::move(operation), failure(std::move(status)));
    }
  }
  const std::string_view action = operation->writes ? "write" : "read";
  if (result < 0) {
    Status status = file_error(-result, action, operation->file->path());
    return finish(std::move(operation), failure(std::move(status)));
  }
  if (operation->writes && operation->moved < operation->length) {
    Status status = file_error(EIO, action, operation->file->path());
    return finish(std::move(operation), failure(std::move(status)));
  }
  const std::size_t moved = operation->moved;
  finish(std::move(operation), moved);
}

void UringDiskIo::finish(std::unique_ptr<Operation> operation, Result<std::size_t> result) {
  // The file is let go and the place given back before the answer: whoever is answered may start
  // the next operation at once.
  Completion<std::size_t> done = std::move(operation->done);
  operation.reset();
  {
    MutexLock lock(mutex_);
    --in_flight_;
    if (in_flight_ == 0) idle_.notify_all();
  }
  done.complete(std::move(result));
}

}  // namespace millrace
