#include "cli/object_reader.h"

#include <algorithm>
#include <deque>

#include <fmt/format.h>

#include "base/linked_cancellation.h"

namespace millrace::cli {
namespace {

struct PendingRange {
  Waiter<GetResult> waiter;
  ByteRange range;
};

Result<Slice> wait_for(PendingRange& pending, const ObjectInfo& info) {
  auto result = pending.waiter.wait();
  if (!result && result.error().code() == StatusCode::kPreconditionFailed) {
    return failure(
        StatusCode::kPreconditionFailed,
        fmt::format("'{}' was replaced while it was read: start again", info.key.value()));
  }
  if (!result) return failure(std::move(result).error());
  if (result->data.size() != pending.range.length) {
    return failure(StatusCode::kCorruption,
                   fmt::format("'{}': asked for {} bytes at {}, got {}", info.key.value(),
                               pending.range.length, pending.range.offset, result->data.size()));
  }
  return std::move(result->data);
}

}  // namespace

Status read_object(Session& session, const RequestContext& context, ObjectStore& store,
                   const ObjectInfo& info, ByteRange range, const ByteSink& sink,
                   const ReadLimits& limits) {
  const LinkedCancellation cancellation(context);
  std::deque<PendingRange> pending;
  std::uint64_t next = range.offset;
  Status status;
  while (status.ok() && (next < range.end() || !pending.empty())) {
    while (next < range.end() && pending.size() < limits.ranges_in_flight) {
      const ByteRange part{next, std::min(limits.range_bytes, range.end() - next)};
      pending.push_back({{}, part});
      store.get_range(session.request(cancellation.context()), {info.key, part, info.identity},
                      pending.back().waiter.completion());
      next = part.end();
    }
    auto data = wait_for(pending.front(), info);
    pending.pop_front();
    status = data ? sink(std::move(*data)) : std::move(data).error();
  }
  // The store must not be left with requests that its owner does not know of.
  if (!pending.empty()) cancellation.context().cancellation().request();
  for (PendingRange& left : pending)
    std::ignore = left.waiter.wait();
  return status;
}

}  // namespace millrace::cli
