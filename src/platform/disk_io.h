#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/completion.h"
#include "base/executor.h"
#include "base/request_context.h"
#include "platform/disk.h"

namespace millrace {

// Positioned reads and writes that answer later.
//
// Ownership: the engine shares the file until the answer, so its descriptor cannot be closed, and
// reused by another file, under a running transfer. The memory belongs to the caller and must stay
// in place until the answer.
//
// Limits: at most `depth` operations are in flight. One more is answered with kResourceExhausted:
// the caller waits for an answer, or sheds load.
//
// A request that has ended (deadline, cancellation) before its turn is answered so without touching
// the disk; one that the kernel has is not called back.
//
// All methods are safe from any thread. The destructor waits for what is in flight; it must not run
// inside an answer.
class DiskIo {
 public:
  virtual ~DiskIo() = default;

  // Fills `into`. The answer is the count: less than asked for only at the end of the file.
  virtual void read(const RequestContext& context, std::shared_ptr<DiskFile> file,
                    std::uint64_t offset, MutableByteView into, Completion<std::size_t> done) = 0;
  // Writes all bytes. The answer is their count. Not durable before DiskFile::sync.
  virtual void write(const RequestContext& context, std::shared_ptr<DiskFile> file,
                     std::uint64_t offset, ByteView from, Completion<std::size_t> done) = 0;

  virtual std::size_t in_flight() const = 0;
  // "threads" or "io_uring".
  virtual std::string_view name() const = 0;
};

enum class DiskIoPreference : std::uint8_t {
  kAny,  // io_uring where the kernel allows it, else threads.
  kThreads,
  kUring,  // Or a failure that says why not.
};

struct DiskIoOptions {
  DiskIoPreference preference = DiskIoPreference::kAny;
  std::size_t depth = 256;
};

struct ChosenDiskIo {
  std::unique_ptr<DiskIo> engine;
  // For logs and `doctor`: "io_uring", or "threads, because ...".
  std::string choice;
};

// Makes the engine that the options ask for. `executor` runs the transfers of the threaded engine
// and must outlive it; io_uring does not use it. kUnsupported when kUring is asked for and this
// build or this kernel has none.
Result<ChosenDiskIo> make_disk_io(const DiskIoOptions& options, Executor& executor);

}  // namespace millrace
