#pragma once

#include <liburing.h>

#include <memory>
#include <thread>

#include "base/mutex.h"
#include "platform/disk_io.h"

namespace millrace {

// DiskIo by io_uring: one ring, one thread that takes the answers. Needs files with a descriptor;
// others are answered with kUnsupported. Callbacks on the inline executor run on the ring's thread,
// so they must be short.
class UringDiskIo final : public DiskIo {
 public:
  // kUnsupported when the kernel has no io_uring or refuses it, as many containers do.
  static Result<std::unique_ptr<UringDiskIo>> create(std::size_t depth,
                                                     const Clock& clock = system_clock());
  ~UringDiskIo() override;

  void read(const RequestContext& context, std::shared_ptr<DiskFile> file, std::uint64_t offset,
            MutableByteView into, Completion<std::size_t> done) override;
  void write(const RequestContext& context, std::shared_ptr<DiskFile> file, std::uint64_t offset,
             ByteView from, Completion<std::size_t> done) override;
  std::size_t in_flight() const override;
  std::string_view name() const override { return "io_uring"; }

 private:
  struct Operation;
  UringDiskIo(std::size_t depth, const Clock& clock) : depth_(depth), clock_(clock) {}

  void start(const RequestContext& context, std::unique_ptr<Operation> operation);
  // Hands the rest of the operation to the kernel, which then owns it; gives it back on failure.
  Status submit(std::unique_ptr<Operation>& operation) MR_REQUIRES(mutex_);
  Status flush(io_uring_sqe* entry) MR_REQUIRES(mutex_);
  void wake_reaper_to_stop();
  void reap();
  // Takes one answer of the kernel: done, or the rest is submitted again.
  void advance(std::unique_ptr<Operation> operation, int result);
  void finish(std::unique_ptr<Operation> operation, Result<std::size_t> result);

  // Constant after construction.
  const std::size_t depth_;
  const Clock& clock_;
  std::thread reaper_;

  mutable Mutex mutex_;
  CondVar idle_;
  // The submission side is guarded by the mutex; the completion side belongs to the reaper alone.
  io_uring ring_{};
  std::size_t in_flight_ MR_GUARDED_BY(mutex_) = 0;
  bool stopping_ MR_GUARDED_BY(mutex_) = false;
};

}  // namespace millrace
