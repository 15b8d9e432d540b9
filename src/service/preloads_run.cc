// The half of Preloads that its thread does.
#include <algorithm>

#include <fmt/format.h>

#include "base/current_request.h"
#include "base/log.h"
#include "service/preloads.h"

namespace millrace {

std::optional<PreloadInfo> Preloads::begin(const PreloadId& id,
                                           std::shared_ptr<PreloadProgress>& progress,
                                           std::shared_ptr<Cancellation>& cancellation) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (stopping_ || found == preloads_.end() || has_ended(found->second.info.state)) {
    return std::nullopt;
  }
  Preload& preload = found->second;
  progress = preload.progress;
  cancellation = preload.cancellation;
  const TimePoint now = parts_.clock.now();
  progress->set_problem(now, "");
  progress->restart(now, preload.info.bytes_total);
  progress->add(now, preload.info.bytes_done, false);
  preload.info.state = PreloadState::kRunning;
  preload.info.problem.clear();
  preload.is_renewed = true;
  save(preload.info);
  return preload.info;
}

void Preloads::run(const PreloadId& id) {
  std::shared_ptr<PreloadProgress> progress;
  std::shared_ptr<Cancellation> cancellation;
  const std::optional<PreloadInfo> preload = begin(id, progress, cancellation);
  if (!preload) return;
  const PreloadRequest& request = preload->request;
  RequestContext context =
      RequestContext(TimePoint::max(), std::make_shared<const Caller>(request.holder))
          .with_cancellation(cancellation);
  if (parts_.observer != nullptr) {
    context =
        context.with_account(parts_.observer->account(request.version.text(), request.holder));
  }
  const Status status = work_patiently(context, *preload, *progress);
  if (preload_may_wait_out(status) && give_way(id, status)) {
    log_info("a preload lets others go first", {{"preload", id.value()},
                                                {"version", request.version.text()},
                                                {"error", status.to_string()}});
    return;
  }
  if (status.ok()) {
    log_info("a preload is ready", {{"preload", id.value()}, {"version", request.version.text()}});
  } else if (!cancellation->requested()) {
    log_error("a preload has failed", {{"preload", id.value()},
                                       {"version", request.version.text()},
                                       {"error", status.to_string()}});
  }
  // Before anybody is told, who may ask for the room at once.
  if (!keeps_lease(id, status)) release_lease(id);
  end(id, status);
}

void Preloads::release_lease(const PreloadId& id) {
  const Status released =
      parts_.cache.leases().release(RequestContext::background(), PreloadRun::lease_of(id));
  if (!released.ok()) {
    log_error("the lease of a preload that ended cannot be released",
              {{"preload", id.value()}, {"error", released.to_string()}});
  }
}

// A preload that failed, or was cancelled while it renewed its lease, has none. One that stops with
// the gateway has not ended.
bool Preloads::keeps_lease(const PreloadId& id, const Status& status) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (found == preloads_.end() || !found->second.info.request.lease) return false;
  return stopping_ || (status.ok() && !has_ended(found->second.info.state));
}

std::optional<Duration> Preloads::final_lease(const PreloadId& id) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (found == preloads_.end()) return std::nullopt;
  found->second.is_renewed = false;
  return found->second.info.request.lease;
}

void Preloads::renew_on(const PreloadId& id) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (found != preloads_.end()) found->second.is_renewed = true;
}

bool Preloads::gives_way(const PreloadId& id, const PreloadProgress& progress) {
  if (progress.stuck(parts_.clock.now()) < options_.patience) return false;
  MutexLock lock(mutex_);
  return std::ranges::any_of(preloads_, [&](const auto& entry) {
    return entry.first != id && entry.second.info.state == PreloadState::kQueued;
  });
}

bool Preloads::give_way(const PreloadId& id, const Status& why) {
  bool is_leased = false;
  {
    MutexLock lock(mutex_);
    const auto found = preloads_.find(id);
    if (stopping_ || found == preloads_.end() || has_ended(found->second.info.state)) return false;
    PreloadInfo info = described(found->second);
    info.state = PreloadState::kQueued;
    info.bytes_per_second = 0;
    info.time_left.reset();
    info.problem = fmt::format("others go first: {}", why.to_string());
    is_leased = info.request.lease.has_value();
    found->second.info = std::move(info);
    save(found->second.info);
  }
  // The others may need the room, which nobody has promised to this one.
  if (!is_leased) release_lease(id);
  enqueue(id);
  return true;
}

Status Preloads::work_patiently(const RequestContext& context, const PreloadInfo& preload,
                                PreloadProgress& progress) {
  Duration pause = options_.pause_min;
  for (;;) {
    Status status = work(context, preload, progress);
    if (!preload_may_wait_out(status)) return status;
    // After a restart the store may not be there yet.
    progress.set_problem(parts_.clock.now(), status.to_string());
    if (gives_way(preload.id, progress)) return status;
    renew_on(preload.id);
    parts_.clock.sleep_until(parts_.clock.now() + pause, &context.cancellation());
    MR_RETURN_IF_ERROR(context.check(parts_.clock));
    pause = std::min(2 * pause, options_.pause_max);
  }
}

Status Preloads::work(const RequestContext& context, const PreloadInfo& preload,
                      PreloadProgress& progress) {
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree,
                      parts_.datasets.version(context, preload.request.version));
  PreloadRun run({.cache = parts_.cache,
                  .clock = parts_.clock,
                  .options = options_,
                  .gives_way = [&] { return gives_way(preload.id, progress); }},
                 preload.id, preload.request, tree);
  MR_RETURN_IF_ERROR(run.prepare(context));
  // Also what was leased before a restart: it may have expired or been broken since.
  MR_RETURN_IF_ERROR(run.grant(context));
  MR_RETURN_IF_ERROR(run.fetch(context, progress));
  // It lasts from when it is ready. Somebody may have joined who wants it longer.
  const std::optional<Duration> lease = final_lease(preload.id);
  if (!lease) return {};
  return parts_.cache.leases().renew(context, PreloadRun::lease_of(preload.id), *lease);
}

}  // namespace millrace
