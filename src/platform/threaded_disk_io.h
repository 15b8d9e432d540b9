#pragma once

#include <functional>

#include "base/gate.h"
#include "base/limiter.h"
#include "platform/disk_io.h"

namespace millrace {

// DiskIo by blocking calls on an executor: works with every Disk, and on a ManualExecutor in
// simulation. The executor must outlive it.
class ThreadedDiskIo final : public DiskIo {
 public:
  ThreadedDiskIo(Executor& executor, std::size_t depth, const Clock& clock = system_clock());
  ~ThreadedDiskIo() override;

  void read(const RequestContext& context, std::shared_ptr<DiskFile> file, std::uint64_t offset,
            MutableByteView into, Completion<std::size_t> done) override;
  void write(const RequestContext& context, std::shared_ptr<DiskFile> file, std::uint64_t offset,
             ByteView from, Completion<std::size_t> done) override;
  std::size_t in_flight() const override { return limiter_.in_use(); }
  std::string_view name() const override { return "threads"; }

 private:
  using Transfer = std::move_only_function<Result<std::size_t>()>;
  void start(const RequestContext& context, Transfer transfer, Completion<std::size_t> done);

  // Constant after construction.
  Executor& executor_;
  const Clock& clock_;

  // Synchronise themselves.
  Limiter limiter_;
  Gate gate_;
};

}  // namespace millrace
