#include "platform/threaded_disk_io.h"

namespace millrace {

ThreadedDiskIo::ThreadedDiskIo(Executor& executor, std::size_t depth, const Clock& clock)
    : executor_(executor), clock_(clock), limiter_("disk_io", Limiter::Unit::kCount, depth) {}

ThreadedDiskIo::~ThreadedDiskIo() { gate_.close(); }

void ThreadedDiskIo::read(const RequestContext& context, std::shared_ptr<DiskFile> file,
                          std::uint64_t offset, MutableByteView into,
                          Completion<std::size_t> done) {
  start(
      context, [file = std::move(file), offset, into] { return file->read_at(offset, into); },
      std::move(done));
}

void ThreadedDiskIo::write(const RequestContext& context, std::shared_ptr<DiskFile> file,
                           std::uint64_t offset, ByteView from, Completion<std::size_t> done) {
  start(
      context,
      [file = std::move(file), offset, from]() -> Result<std::size_t> {
        MR_RETURN_IF_ERROR(file->write_at(offset, from));
        return from.size();
      },
      std::move(done));
}

void ThreadedDiskIo::start(const RequestContext& context, Transfer transfer,
                           Completion<std::size_t> done) {
  auto pass = gate_.enter();
  if (!pass) return done.complete(failure(StatusCode::kCancelled, "disk I/O is shutting down"));
  Result<Limiter::Reservation> place = limiter_.try_reserve(1);
  if (!place) return done.complete(failure(place.error()));

  // Shared, because a refused task is destroyed by the executor and would take the answer with it.
  auto answer = std::make_shared<Completion<std::size_t>>(std::move(done));
  Status submitted =
      executor_.submit([this, context, answer, transfer = std::move(transfer),
                        pass = std::move(pass), place = std::move(*place)]() mutable {
        Status alive = context.check(clock_);
        Result<std::size_t> result = alive.ok() ? transfer() : failure(std::move(alive));
        // The file is let go and the place given back before the answer: whoever is answered may
        // start the next operation, or destroy this object, at once.
        transfer = nullptr;
        place = Limiter::Reservation();
        pass.reset();
        answer->complete(std::move(result));
      });
  if (!submitted.ok()) answer->complete(failure(std::move(submitted)));
}

}  // namespace millrace
