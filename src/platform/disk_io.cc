#include "platform/disk_io.h"

#include "platform/threaded_disk_io.h"
#if MILLRACE_WITH_URING
#include "platform/uring_disk_io.h"
#endif

namespace millrace {
namespace {

Result<std::unique_ptr<DiskIo>> make_uring([[maybe_unused]] std::size_t depth) {
#if MILLRACE_WITH_URING
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskIo> engine, UringDiskIo::create(depth));
  return engine;
#else
  return failure(StatusCode::kUnsupported, "this build has no io_uring (MILLRACE_WITH_URING=OFF)");
#endif
}

}  // namespace

Result<ChosenDiskIo> make_disk_io(const DiskIoOptions& options, Executor& executor) {
  std::string reason = "as configured";
  if (options.preference != DiskIoPreference::kThreads) {
    Result<std::unique_ptr<DiskIo>> engine = make_uring(options.depth);
    if (engine) return ChosenDiskIo{std::move(*engine), "io_uring"};
    if (options.preference == DiskIoPreference::kUring) return failure(engine.error());
    reason = "because " + engine.error().message();
  }
  return ChosenDiskIo{std::make_unique<ThreadedDiskIo>(executor, options.depth),
                      "threads, " + reason};
}

}  // namespace millrace
