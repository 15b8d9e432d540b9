#include "service/preload_run.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/task_group.h"
#include "service/preload_pace.h"

namespace millrace {
namespace {

// Of a version that is packed anew while it is preloaded.
constexpr int kLayoutsMax = 4;
// What was lost meanwhile, to damage or to a disk that others fill, is fetched again so often.
constexpr int kRoundsMax = 4;

bool is_packed_anew(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kPreconditionFailed;
}

}  // namespace

bool preload_may_wait_out(const Status& status) {
  return status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kThrottled ||
         status.code() == StatusCode::kDeadlineExceeded;
}

// ---- Planning

PreloadRun::PreloadRun(Parts parts, PreloadId id, PreloadRequest request,
                       std::shared_ptr<VersionTree> tree)
    : parts_(std::move(parts)),
      id_(std::move(id)),
      request_(std::move(request)),
      tree_(std::move(tree)),
      objects_(tree_->objects()) {}

Status PreloadRun::prepare(const RequestContext& context) {
  Status status = prepare_layout(context);
  for (int layout = 1; layout < kLayoutsMax; ++layout) {
    MR_ASSIGN_OR_RETURN(const bool is_renewed, has_newer(context, status));
    if (!is_renewed) break;
    status = prepare_layout(context);
  }
  return status;
}

Result<bool> PreloadRun::has_newer(const RequestContext& context, const Status& status) {
  if (!is_packed_anew(status)) return false;
  MR_ASSIGN_OR_RETURN(auto newer, tree_->newer_than(context, objects_));
  if (newer == nullptr) return false;
  objects_ = std::move(newer);
  return true;
}

Status PreloadRun::prepare_layout(const RequestContext& context) {
  std::vector<PathGlob> globs;
  for (const std::string& path : request_.paths) {
    MR_ASSIGN_OR_RETURN(PathGlob glob, PathGlob::parse(path));
    globs.push_back(std::move(glob));
  }
  MR_ASSIGN_OR_RETURN(plan_, PreloadPlan::make(context, parts_.clock, objects_, globs));
  fit_ = PreloadFit();
  taken_bytes_.reset();
  total_bytes_ = 0;
  LeaseSize size = parts_.cache.leases().size(lease_of(id_), lease_kind());
  const Status visited = plan_->visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_RETURN_IF_ERROR(context.check(parts_.clock));
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached,
                        parts_.cache.cached_bytes(context, object, range));
    fit_.cached_bytes += cached;
    size.add(LeasedRange(object, range));
    total_bytes_ += range.length;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  fit_.wanted_bytes = size.bytes();
  fit_.limit_bytes = size.limit_bytes();
  fit_.leased_bytes = size.leased_bytes();
  fit_.short_bytes = size.short_bytes();
  if (fit_.fits()) return {};
  if (request_.what_fits) return take_what_fits(context);
  return {StatusCode::kResourceExhausted,
          fmt::format("{} does not fit into the cache: {}", request_.version.text(), fit_.text())};
}

Status PreloadRun::take_what_fits(const RequestContext& context) {
  std::vector<std::uint64_t> taken;
  total_bytes_ = 0;
  LeaseSize size = parts_.cache.leases().size(lease_of(id_), lease_kind());
  const Status visited = plan_->visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    MR_RETURN_IF_ERROR(context.check(parts_.clock));
    taken.push_back(std::min(size.add_what_fits(LeasedRange(object, range)), range.length));
    total_bytes_ += taken.back();
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  fit_.short_bytes = fit_.wanted_bytes - size.bytes();
  taken_bytes_ = std::move(taken);
  return {};
}

Status PreloadRun::visit(const PreloadPlan::Visitor& visitor) const {
  if (!taken_bytes_) return plan_->visit(visitor);
  auto taken = taken_bytes_->begin();
  return plan_->visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    range.length = *taken++;
    return range.empty() ? Status() : visitor(object, range);
  });
}

Status PreloadRun::grant(const RequestContext& context) {
  LeaseRequest lease{.id = lease_of(id_),
                     .holder = request_.holder.principal,
                     .lifetime = lease_lifetime(),
                     .ranges = {},
                     .kind = lease_kind()};
  MR_RETURN_IF_ERROR(visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    if (lease.ranges.size() < parts_.options.leased_ranges_max) {
      lease.ranges.emplace_back(object, range);
      return {};
    }
    // The rest is not held, and fetched again where it was pushed out.
    if (!request_.lease) return {};
    return {StatusCode::kResourceExhausted,
            fmt::format("a lease has at most {} objects or parts of objects: preload less of {}, "
                        "or without a lease",
                        parts_.options.leased_ranges_max, request_.version.text())};
  }));
  return parts_.cache.leases().grant(context, lease);
}

// A lease that was broken meanwhile is asked for again.
Status PreloadRun::renew(const RequestContext& context) {
  Status status = parts_.cache.leases().renew(context, lease_of(id_), lease_lifetime());
  return status.code() == StatusCode::kNotFound ? grant(context) : status;
}

Result<bool> PreloadRun::is_cached(const RequestContext& context) const {
  bool all = true;
  const Status visited = visit([&](const ObjectVersion& object, ByteRange range) -> Status {
    if (!all) return {};
    MR_RETURN_IF_ERROR(context.check(parts_.clock));
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached,
                        parts_.cache.cached_bytes(context, object, range));
    all = cached == range.length;
    return {};
  });
  MR_RETURN_IF_ERROR(visited);
  return all;
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
        pace_(run.parts_.clock, run.request_.bytes_per_second_max) {}

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
    MR_ASSIGN_OR_RETURN(const std::uint64_t cached,
                        run_.parts_.cache.cached_bytes(context_, object, piece));
    if (cached == piece.length) {
      progress_.add(run_.parts_.clock.now(), piece.length, false);
      return {};
    }
    // A wait that a failure ends: it may take hours.
    pace_.take(piece.length - cached, group_.cancellation());
    return group_.add([this, object, piece](const RequestContext& part) -> Status {
      MR_RETURN_IF_ERROR(fetch(part, object, piece));
      progress_.add(run_.parts_.clock.now(), piece.length, true);
      return {};
    });
  }

  Status fetch(const RequestContext& part, const ObjectVersion& object, ByteRange piece) {
    Clock& clock = run_.parts_.clock;
    Duration pause = run_.parts_.options.pause_min;
    for (;;) {
      Status status = run_.parts_.cache.warm(part, object, piece, Urgency::kSpeculative);
      if (!preload_may_wait_out(status)) {
        if (status.ok()) progress_.set_problem(clock.now(), "");
        return status;
      }
      progress_.set_problem(clock.now(), status.to_string());
      if (run_.parts_.gives_way()) return status;
      clock.sleep_until(clock.now() + pause, &part.cancellation());
      MR_RETURN_IF_ERROR(part.check(clock));
      pause = std::min(2 * pause, run_.parts_.options.pause_max);
    }
  }

  PreloadRun& run_;
  const RequestContext& context_;
  PreloadProgress& progress_;
  TaskGroup group_;
  PreloadPace pace_;
};

Status PreloadRun::fetch_layout(const RequestContext& context, PreloadProgress& progress) {
  progress.restart(parts_.clock.now(), total_bytes_);
  Fetches fetches(*this, context, progress);
  const Status added = visit(
      [&](const ObjectVersion& object, ByteRange range) { return fetches.add(object, range); });
  Status fetched = fetches.wait();
  return fetched.ok() ? added : fetched;
}

Status PreloadRun::fetch_newest(const RequestContext& context, PreloadProgress& progress) {
  Status status = fetch_layout(context, progress);
  for (int layout = 1; layout < kLayoutsMax; ++layout) {
    MR_ASSIGN_OR_RETURN(const bool is_renewed, has_newer(context, status));
    if (!is_renewed) break;
    MR_RETURN_IF_ERROR(prepare(context));
    MR_RETURN_IF_ERROR(grant(context));
    status = fetch_layout(context, progress);
  }
  return status;
}

Status PreloadRun::fetch(const RequestContext& context, PreloadProgress& progress) {
  for (int round = 0; round < kRoundsMax; ++round) {
    MR_RETURN_IF_ERROR(fetch_newest(context, progress));
    // Before it looks: what is there then, and held, stays.
    MR_RETURN_IF_ERROR(renew(context));
    MR_ASSIGN_OR_RETURN(const bool all, is_cached(context));
    if (all) return {};
  }
  return {StatusCode::kResourceExhausted,
          fmt::format("{} does not stay in the cache: others fill its disk, or that loses what is "
                      "written",
                      request_.version.text())};
}

}  // namespace millrace
