#include "service/preload_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/task_group.h"
#include "cache/cache_directory.h"

namespace millrace {
namespace {

// Of a version that is packed anew while it is preloaded.
constexpr int kLayoutsMax = 4;

bool is_packed_anew(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kPreconditionFailed;
}

// What a range takes of the cache's space. A lease is on whole blocks.
std::uint64_t room_of(const ObjectVersion& object, ByteRange range, bool leased) {
  UnitRange units = units_of(range);
  if (leased) {
    const std::uint32_t first = units.first / kBlockUnits * kBlockUnits;
    const std::uint32_t blocks_end = (units.end() + kBlockUnits - 1) / kBlockUnits * kBlockUnits;
    units = {first, std::min(blocks_end, unit_count(object.size())) - first};
  }
  return CacheDirectory::room_for(object, units);
}

}  // namespace

bool preload_may_wait_out(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kThrottled ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// ---- Progress

void PreloadProgress::restart(TimePoint now, std::uint64_t total_bytes) {
  MutexLock lock(mutex_);
  started_ = now;
  total_bytes_ = total_bytes;
  problem_.clear();
  done_bytes_ = 0;
  fetched_bytes_ = 0;
}

void PreloadProgress::add(std::uint64_t bytes, bool fetched) {
  done_bytes_ += bytes;
  if (fetched) fetched_bytes_ += bytes;
}

void PreloadProgress::set_problem(std::string problem) {
  MutexLock lock(mutex_);
  problem_ = std::move(problem);
}

void PreloadProgress::describe(TimePoint now, PreloadInfo& preload) const {
  MutexLock lock(mutex_);
  preload.bytes_done = done_bytes_;
  preload.bytes_total = total_bytes_;
  preload.problem = problem_;
  const double seconds = std::chrono::duration<double>(now - started_).count();
  if (seconds <= 0 || fetched_bytes_ == 0) return;
  const double rate = static_cast<double>(fetched_bytes_) / seconds;
  const std::uint64_t rest = total_bytes_ - std::min<std::uint64_t>(total_bytes_, done_bytes_);
  preload.bytes_per_second = static_cast<std::uint64_t>(rate);
  preload.time_left = std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(static_cast<double>(rest) / rate));
}

// ---- Planning

PreloadRun::PreloadRun(Parts parts, PreloadId id, PreloadRequest request,
                       std::shared_ptr<VersionTree> tree)
    : parts_(parts),
      id_(std::move(id)),
      request_(std::move(request)),
      tree_(std::move(tree)),
      objects_(tree_->objects()) {}

Status PreloadRun::prepare(const RequestContext& context) {
  std::vector<PathGlob> globs;
  for (const std::string& path : request_.paths) {
    MR_ASSIGN_OR_RETURN(PathGlob glob, PathGlob::parse(path));
    globs.push_back(std::move(glob));
  }
  MR_ASSIGN_OR_RETURN(plan_, PreloadPlan::make(context, parts_.clock, objects_, globs));
  fit_ = PreloadFit();
  fit_.limit_bytes = parts_.cache.usage().limit_bytes;
  for (const LeaseInfo& lease : parts_.cache.leases().list()) {
    if (lease.id != lease_of(id_)) fit_.leased_bytes += lease.bytes;
  }
  std::uint64_t plan_bytes = 0;
  const Status visited = plan_->visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_RETURN_IF_ERROR(context.check(parts_.clock));
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached,
                        parts_.cache.cached_bytes(context, object, range));
    fit_.cached_bytes += cached;
    fit_.wanted_bytes += room_of(object, range, request_.lease.has_value());
    plan_bytes += range.length;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  total_bytes_ = plan_bytes;
  if (fit_.fits()) return {};
  if (!request_.what_fits) {
    return {StatusCode::kResourceExhausted, fmt::format("{} does not fit into the cache: {}",
                                                        request_.version.text(), fit_.text())};
  }
  total_bytes_ = 0;
  return visit([this](const ObjectVersion& /*object*/, ByteRange range) -> Status {
    total_bytes_ += range.length;
    return {};
  });
}

Status PreloadRun::visit(const PreloadPlan::Visitor& visitor) const {
  if (fit_.fits()) return plan_->visit(visitor);
  std::uint64_t room = fit_.room_bytes();
  return plan_->visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    const std::uint64_t taken = room_of(object, range, request_.lease.has_value());
    if (taken > room) return {};
    room -= taken;
    return visitor(object, range);
  });
}

Status PreloadRun::grant(const RequestContext& context) {
  if (!request_.lease) return {};
  LeaseRequest lease{.id = lease_of(id_),
                     .holder = request_.holder.principal,
                     .lifetime = *request_.lease,
                     .ranges = {}};
  MR_RETURN_IF_ERROR(visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    if (lease.ranges.size() >= parts_.options.leased_ranges_max) {
      return {StatusCode::kResourceExhausted,
              fmt::format("a lease has at most {} objects or parts of objects: preload less of {}, "
                          "or without a lease",
                          parts_.options.leased_ranges_max, request_.version.text())};
    }
    lease.ranges.emplace_back(object, range);
    return {};
  }));
  return parts_.cache.leases().grant(context, lease);
}

// A lease that was broken meanwhile is asked for again.
Status PreloadRun::renew(const RequestContext& context) {
  if (!request_.lease) return {};
  Status status = parts_.cache.leases().renew(context, lease_of(id_), *request_.lease);
  return status.code() == StatusCode::kNotFound ? grant(context) : status;
}

// ---- Fetching

// The fetches of one layout, some at a time, no faster than asked for.
class PreloadRun::Fetches {
 public:
  Fetches(PreloadRun& run, const RequestContext& context, PreloadProgress& progress)
      : run_(run),
        context_(context),
        progress_(progress),
        group_(context, run.parts_.options.fetches_max),
        started_(run.parts_.clock.now()),
        renewed_(started_) {}

  Status add(const ObjectVersion& object, ByteRange range) {
    // Blocks that are whole, so that two fetches never wait for one flight.
    while (!range.empty()) {
      const std::uint64_t length = std::min(range.length, kBlockBytes - range.offset % kBlockBytes);
      MR_RETURN_IF_ERROR(add_piece(object, {range.offset, length}));
      range = {range.offset + length, range.length - length};
    }
    return {};
  }
  Status wait() { return group_.wait(); }

 private:
  Status add_piece(const ObjectVersion& object, ByteRange piece) {
    MR_RETURN_IF_ERROR(keep_lease());
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached,
                        run_.parts_.cache.cached_bytes(context_, object, piece));
    if (cached == piece.length) {
      progress_.add(piece.length, false);
      return {};
    }
    pace(piece.length - cached);
    return group_.add([this, object, piece](const RequestContext& part) -> Status {
      MR_RETURN_IF_ERROR(fetch(part, object, piece));
      progress_.add(piece.length, true);
      return {};
    });
  }

  // A slow preload must not outlive its own lease.
  Status keep_lease() {
    const TimePoint now = run_.parts_.clock.now();
    if (!run_.request_.lease || now - renewed_ < *run_.request_.lease / 3) return {};
    renewed_ = now;
    return run_.renew(context_);
  }

  void pace(std::uint64_t bytes) {
    const std::uint64_t rate = run_.request_.bytes_per_second_max;
    if (rate > 0) {
      const std::chrono::duration<double> due(static_cast<double>(sent_bytes_) /
                                              static_cast<double>(rate));
      run_.parts_.clock.sleep_until(started_ + std::chrono::duration_cast<Duration>(due),
                                    &context_.cancellation());
    }
    sent_bytes_ += bytes;
  }

  Status fetch(const RequestContext& part, const ObjectVersion& object, ByteRange piece) {
    Clock& clock = run_.parts_.clock;
    Duration pause = run_.parts_.options.pause_min;
    for (;;) {
      Status status = run_.parts_.cache.warm(part, object, piece, Urgency::kSpeculative);
      if (!preload_may_wait_out(status)) {
        if (status.ok()) progress_.set_problem("");
        return status;
      }
      progress_.set_problem(status.to_string());
      clock.sleep_until(clock.now() + pause, &part.cancellation());
      MR_RETURN_IF_ERROR(part.check(clock));
      pause = std::min(2 * pause, run_.parts_.options.pause_max);
    }
  }

  PreloadRun& run_;
  const RequestContext& context_;
  PreloadProgress& progress_;
  TaskGroup group_;
  const TimePoint started_;
  TimePoint renewed_;
  std::uint64_t sent_bytes_ = 0;
};

Status PreloadRun::fetch_layout(const RequestContext& context, PreloadProgress& progress) {
  progress.restart(parts_.clock.now(), total_bytes_);
  Fetches fetches(*this, context, progress);
  const Status added = visit(
      [&](const ObjectVersion& object, ByteRange range) { return fetches.add(object, range); });
  Status fetched = fetches.wait();
  return fetched.ok() ? added : fetched;
}

Status PreloadRun::fetch(const RequestContext& context, PreloadProgress& progress) {
  Status status = fetch_layout(context, progress);
  for (int layout = 1; layout < kLayoutsMax && is_packed_anew(status); ++layout) {
    MR_ASSIGN_OR_RETURN(const auto newer, tree_->newer_than(context, objects_));
    if (newer == nullptr) return status;
    objects_ = newer;
    MR_RETURN_IF_ERROR(prepare(context));
    MR_RETURN_IF_ERROR(grant(context));
    status = fetch_layout(context, progress);
  }
  return status;
}

}  // namespace millrace
