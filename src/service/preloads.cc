#include "service/preloads.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/current_request.h"
#include "base/log.h"

namespace millrace {
namespace {

constexpr std::size_t kPathsMax = 64;
constexpr Duration kPreloadLeaseMax = std::chrono::days(366);

std::unexpected<Status> no_such_preload(const PreloadId& id) {
  return failure(
      StatusCode::kNotFound,
      fmt::format("there is no preload '{}' (any more): 'millrace preload ls' lists them",
                  id.value().substr(0, 64)));
}

}  // namespace

// ---- Opening and closing

Result<std::unique_ptr<Preloads>> Preloads::open(Parts parts, PreloadOptions options) {
  MR_ASSIGN_OR_RETURN(PreloadJournal journal, PreloadJournal::open(parts.disk, parts.directory));
  std::unique_ptr<Preloads> preloads(new Preloads(std::move(parts), options, std::move(journal)));
  MR_RETURN_IF_ERROR(preloads->load());
  preloads->arm_renewal();
  return preloads;
}

Preloads::Preloads(Parts parts, PreloadOptions options, PreloadJournal journal)
    : parts_(std::move(parts)),
      options_(options),
      journal_(std::move(journal)),
      thread_({.name = "preload", .threads = 1, .queued_tasks_max = options.unfinished_max}),
      renewals_({.name = "preload-leases", .threads = 1, .queued_tasks_max = 1}) {}

Preloads::~Preloads() {
  std::vector<Waiting> waiting;
  std::vector<std::shared_ptr<Cancellation>> running;
  std::unique_ptr<Clock::Timer> renewal;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
    renewal = std::move(renewal_);
    for (auto& [id, preload] : preloads_) {
      running.push_back(preload.cancellation);
      for (auto& [number, waiter] : preload.waiting)
        waiting.push_back(std::move(waiter));
      preload.waiting.clear();
    }
  }
  for (const std::shared_ptr<Cancellation>& cancellation : running)
    cancellation->request();
  for (Waiting& waiter : waiting)
    waiter.answer(failure(StatusCode::kCancelled, "the gateway stops"));
  timers_.close();
  renewal.reset();
  renewals_.shutdown();
  thread_.shutdown();
}

Status Preloads::load() {
  std::vector<PreloadId> unfinished;
  {
    MutexLock lock(mutex_);
    MR_ASSIGN_OR_RETURN(std::vector<PreloadInfo> loaded, journal_.load());
    for (PreloadInfo& preload : loaded) {
      const PreloadId id = preload.id;
      if (!has_ended(preload.state)) {
        preload.state = PreloadState::kQueued;
        unfinished.push_back(id);
      }
      preloads_.try_emplace(id, Preload{.info = std::move(preload),
                                        .cancellation = std::make_shared<Cancellation>(),
                                        .progress = std::make_shared<PreloadProgress>(),
                                        .waiting = {}});
    }
    forget_old_ones();
  }
  MR_RETURN_IF_ERROR(release_orphans());
  for (const PreloadId& id : unfinished)
    enqueue(id);
  return {};
}

Status Preloads::release_orphans() {
  std::vector<LeaseId> known;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, preload] : preloads_) {
      const PreloadState state = preload.info.state;
      if (!has_ended(state) || state == PreloadState::kReady)
        known.push_back(PreloadRun::lease_of(id));
    }
  }
  for (const LeaseInfo& lease : parts_.cache.leases().list()) {
    if (!PreloadRun::is_lease_of_preload(lease.id)) continue;
    if (std::ranges::find(known, lease.id) != known.end()) continue;
    MR_RETURN_IF_ERROR(parts_.cache.leases().release(RequestContext::background(), lease.id));
  }
  return {};
}

// ---- Leases of those that have not ended

void Preloads::arm_renewal() {
  MutexLock lock(mutex_);
  if (stopping_) return;
  renewal_ = parts_.clock.schedule(parts_.clock.now() + options_.renewal_interval, renewals_,
                                   [this] { renew_leases(); });
}

void Preloads::renew_leases() {
  {
    // The lock is kept, so that none ends meanwhile and has its lease for too long.
    MutexLock lock(mutex_);
    if (stopping_) return;
    for (const auto& [id, preload] : preloads_) {
      const std::optional<Duration>& lease = preload.info.request.lease;
      if (has_ended(preload.info.state) || !preload.is_renewed || !lease) continue;
      const Status status =
          parts_.cache.leases().renew(RequestContext::background(), PreloadRun::lease_of(id),
                                      PreloadRun::unfinished_lease(options_, *lease));
      // One that was broken is asked for again when the preload runs.
      if (status.ok() || status.code() == StatusCode::kNotFound) continue;
      log_error("the lease of a preload cannot be renewed",
                {{"preload", id.value()}, {"error", status.to_string()}});
    }
  }
  arm_renewal();
}

void Preloads::enqueue(const PreloadId& id) {
  thread_.resume([this, id] { run(id); });
}

// ---- Asking

Status Preloads::check_request(const PreloadRequest& request) const {
  if (request.paths.size() > kPathsMax) {
    return {StatusCode::kInvalidArgument, fmt::format("a preload has at most {} patterns, not {}",
                                                      kPathsMax, request.paths.size())};
  }
  if (request.lease &&
      (*request.lease < std::chrono::seconds(1) || *request.lease > kPreloadLeaseMax)) {
    return {StatusCode::kInvalidArgument, "a lease lasts from 1s to 366d"};
  }
  return {};
}

Result<PreloadInfo> Preloads::start(const RequestContext& context, PreloadRequest request) {
  MR_RETURN_IF_ERROR(check_request(request));
  const CurrentRequest current(context);
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<VersionTree> tree,
                      parts_.datasets.version(context, request.version));
  request.version = tree->ref();  // What an alias pointed to when it was asked for.
  MutexLock starting(starting_);
  MR_ASSIGN_OR_RETURN(const std::optional<PreloadInfo> joined, join(context, request, tree));
  if (joined) return *joined;
  PreloadInfo preload{.id = PreloadId(parts_.random.token().substr(0, 12)),
                      .request = std::move(request),
                      .created = parts_.clock.wall_now()};
  PreloadRun planned({.cache = parts_.cache, .clock = parts_.clock, .options = options_},
                     preload.id, preload.request, tree);
  MR_RETURN_IF_ERROR(planned.prepare(context));
  // What only is to be held is so once it is fetched.
  if (preload.request.lease) MR_RETURN_IF_ERROR(planned.grant(context));
  preload.fit = planned.fit();
  preload.files = planned.files();
  preload.bytes_total = planned.total_bytes();
  preload.bytes_done = std::min(planned.fit().cached_bytes, planned.total_bytes());
  if (Status status = add(preload); !status.ok()) {
    (void)parts_.cache.leases().release(context, PreloadRun::lease_of(preload.id));
    return failure(std::move(status));
  }
  enqueue(preload.id);
  return preload;
}

std::vector<PreloadInfo> Preloads::same_as(const PreloadRequest& request) {
  std::vector<PreloadInfo> found;
  MutexLock lock(mutex_);
  for (const auto& [id, preload] : preloads_) {
    const PreloadRequest& known = preload.info.request;
    const PreloadState state = preload.info.state;
    if (known.version != request.version || known.paths != request.paths ||
        known.what_fits != request.what_fits) {
      continue;
    }
    const bool is_kept = state == PreloadState::kReady && known.lease;
    const bool is_coming = !has_ended(state) && (known.lease || !request.lease);
    if (is_kept || is_coming) found.push_back(described(preload));
  }
  return found;
}

Result<std::optional<PreloadInfo>> Preloads::join(const RequestContext& context,
                                                  const PreloadRequest& request,
                                                  const std::shared_ptr<VersionTree>& tree) {
  std::vector<PreloadInfo> candidates = same_as(request);
  add_leases(candidates);
  // What was ready may be evicted once its lease has ended.
  std::erase_if(candidates, [](const PreloadInfo& preload) {
    return has_ended(preload.state) && !preload.leased_until;
  });
  if (candidates.empty()) return std::nullopt;
  std::optional<PreloadInfo> known =
      *std::ranges::max_element(candidates, {}, &PreloadInfo::leased_until);
  if (has_ended(known->state)) {
    MR_ASSIGN_OR_RETURN(const bool is_there, is_all_there(context, *known, tree));
    if (!is_there) take_up_again(*known);
  }
  if (!request.lease) return known;
  if (known->leased_until && parts_.clock.wall_now() + *request.lease > *known->leased_until) {
    const Status renewed =
        parts_.cache.leases().renew(context, PreloadRun::lease_of(known->id), *request.lease);
    if (renewed.code() == StatusCode::kNotFound && has_ended(known->state)) return std::nullopt;
    MR_RETURN_IF_ERROR(renewed);
    known->leased_until = parts_.clock.wall_now() + *request.lease;
  }
  lengthen(*known, *request.lease);
  return known;
}

Result<bool> Preloads::is_all_there(const RequestContext& context, const PreloadInfo& preload,
                                    const std::shared_ptr<VersionTree>& tree) const {
  PreloadRun planned({.cache = parts_.cache, .clock = parts_.clock, .options = options_},
                     preload.id, preload.request, tree);
  MR_RETURN_IF_ERROR(planned.prepare(context));
  return planned.is_cached(context);
}

void Preloads::take_up_again(PreloadInfo& preload) {
  {
    MutexLock lock(mutex_);
    const auto found = preloads_.find(preload.id);
    if (found == preloads_.end()) return;
    found->second.info.state = preload.state = PreloadState::kQueued;
    found->second.info.ended = preload.ended = std::nullopt;
    found->second.is_renewed = true;
    save(found->second.info);
  }
  enqueue(preload.id);
}

void Preloads::lengthen(PreloadInfo& preload, Duration lease) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(preload.id);
  if (found == preloads_.end() || lease <= found->second.info.request.lease) return;
  found->second.info.request.lease = lease;
  preload.request.lease = lease;
  save(found->second.info);
}

Status Preloads::add(PreloadInfo preload) {
  MutexLock lock(mutex_);
  if (stopping_) return {StatusCode::kCancelled, "the gateway stops"};
  const auto unfinished = std::ranges::count_if(
      preloads_, [](const auto& entry) { return !has_ended(entry.second.info.state); });
  if (static_cast<std::size_t>(unfinished) >= options_.unfinished_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("{} preloads wait already", options_.unfinished_max)};
  }
  MR_RETURN_IF_ERROR(journal_.save(preload));
  const PreloadId id = preload.id;
  preloads_.try_emplace(id, Preload{.info = std::move(preload),
                                    .cancellation = std::make_shared<Cancellation>(),
                                    .progress = std::make_shared<PreloadProgress>(),
                                    .waiting = {}});
  forget_old_ones();
  return {};
}

// ---- Looking

PreloadInfo Preloads::described(const Preload& preload) const {
  PreloadInfo info = preload.info;
  if (info.state == PreloadState::kRunning) preload.progress->describe(parts_.clock.now(), info);
  if (info.state == PreloadState::kReady) info.bytes_done = info.bytes_total;
  return info;
}

void Preloads::add_leases(std::vector<PreloadInfo>& preloads) {
  const std::vector<LeaseInfo> leases = parts_.cache.leases().list();
  for (PreloadInfo& preload : preloads) {
    const auto lease = std::ranges::find(leases, PreloadRun::lease_of(preload.id), &LeaseInfo::id);
    if (lease != leases.end()) preload.leased_until = lease->expires;
  }
}

std::vector<PreloadInfo> Preloads::list() {
  std::vector<PreloadInfo> shown;
  {
    MutexLock lock(mutex_);
    for (const auto& [id, preload] : preloads_)
      shown.push_back(described(preload));
  }
  std::ranges::sort(shown, std::greater(), [](const PreloadInfo& preload) {
    return std::pair(preload.created, preload.id);
  });
  add_leases(shown);
  return shown;
}

Result<PreloadInfo> Preloads::find(const PreloadId& id) {
  std::vector<PreloadInfo> shown;
  {
    MutexLock lock(mutex_);
    const auto found = preloads_.find(id);
    if (found == preloads_.end()) return no_such_preload(id);
    shown.push_back(described(found->second));
  }
  add_leases(shown);
  return shown.front();
}

// ---- Waiting

void Preloads::Waiting::answer(Result<PreloadInfo> how) {
  timer.reset();
  context.cancellation().unsubscribe(subscription);
  done.complete(std::move(how));
}

std::uint64_t Preloads::next_waiter() {
  MutexLock lock(mutex_);
  return ++last_waiter_;
}

void Preloads::wait(const RequestContext& context, const PreloadId& id,
                    Completion<PreloadInfo> done) {
  const std::uint64_t waiter = next_waiter();
  const Cancellation::CallbackId subscription =
      context.cancellation().subscribe([this, id, waiter] { answer_now(id, waiter); });
  if (auto answer = add_waiter(context, id, waiter, subscription, done)) {
    context.cancellation().unsubscribe(subscription);
    done.complete(*std::move(answer));
    return;
  }
  // It may have been cancelled before there was anybody to tell.
  if (context.cancellation().requested()) answer_now(id, waiter);
}

std::optional<Result<PreloadInfo>> Preloads::add_waiter(const RequestContext& context,
                                                        const PreloadId& id, std::uint64_t waiter,
                                                        Cancellation::CallbackId subscription,
                                                        Completion<PreloadInfo>& done) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (found == preloads_.end() || stopping_) return no_such_preload(id);
  Preload& preload = found->second;
  if (has_ended(preload.info.state) || !context.check(parts_.clock).ok()) return described(preload);
  std::unique_ptr<Clock::Timer> timer;
  if (std::optional<Gate::Pass> pass = timers_.enter(); pass && context.has_deadline()) {
    timer = parts_.clock.schedule(
        context.deadline(), inline_executor(),
        [this, id, waiter, inside = *std::move(pass)] { answer_now(id, waiter); });
  }
  preload.waiting.try_emplace(waiter, Waiting{.done = std::move(done),
                                              .timer = std::move(timer),
                                              .context = context,
                                              .subscription = subscription});
  return std::nullopt;
}

void Preloads::answer_now(const PreloadId& id, std::uint64_t waiter) {
  MutexLock lock(mutex_);
  const auto found = preloads_.find(id);
  if (found == preloads_.end()) return;
  auto waiting = found->second.waiting.extract(waiter);
  if (waiting.empty()) return;
  PreloadInfo info = described(found->second);
  lock.unlock();
  waiting.mapped().answer(std::move(info));
}

// ---- Ending

Result<PreloadInfo> Preloads::cancel(const RequestContext& context, const PreloadId& id) {
  std::shared_ptr<Cancellation> cancellation;
  {
    MutexLock lock(mutex_);
    const auto found = preloads_.find(id);
    if (found == preloads_.end()) return no_such_preload(id);
    cancellation = found->second.cancellation;
  }
  cancellation->request();
  end(id, {StatusCode::kCancelled, "cancelled by request"});
  MR_RETURN_IF_ERROR(parts_.cache.leases().release(context, PreloadRun::lease_of(id)));
  return find(id);
}

void Preloads::end(const PreloadId& id, const Status& status) {
  std::map<std::uint64_t, Waiting> waiting;
  std::optional<PreloadInfo> info;
  {
    MutexLock lock(mutex_);
    const auto found = preloads_.find(id);
    // One that stops with the gateway has not ended.
    if (found == preloads_.end() || stopping_ || has_ended(found->second.info.state)) return;
    Preload& preload = found->second;
    PreloadInfo last = described(preload);
    last.state = status.ok()                               ? PreloadState::kReady
                 : status.code() == StatusCode::kCancelled ? PreloadState::kCancelled
                                                           : PreloadState::kFailed;
    const bool has_failed = last.state == PreloadState::kFailed;
    last.problem = has_failed ? status.to_string() : "";
    last.code = has_failed ? status.code() : StatusCode::kOk;
    last.ended = parts_.clock.wall_now();
    last.bytes_per_second = 0;
    last.time_left.reset();
    preload.info = last;
    save(preload.info);
    waiting.swap(preload.waiting);
    info = described(preload);
    forget_old_ones();
  }
  for (auto& [number, waiter] : waiting)
    waiter.answer(*info);
}

void Preloads::save(const PreloadInfo& preload) {
  // A disk that refuses it costs the memory of a restart, not the preload.
  if (Status status = journal_.save(preload); !status.ok()) {
    log_error("a preload cannot be noted; after a restart it will look as it did before",
              {{"preload", preload.id.value()}, {"error", status.to_string()}});
  }
}

void Preloads::forget_old_ones() {
  std::vector<std::pair<WallTime, PreloadId>> ended;
  for (const auto& [id, preload] : preloads_) {
    if (preload.info.ended) ended.emplace_back(*preload.info.ended, id);
  }
  if (ended.size() <= options_.ended_max) return;
  // Who has a lease is not over: it is listed and can be cancelled.
  const std::vector<LeaseInfo> leases = parts_.cache.leases().list();
  std::erase_if(ended, [&](const auto& each) {
    const LeaseId lease = PreloadRun::lease_of(each.second);
    return std::ranges::find(leases, lease, &LeaseInfo::id) != leases.end();
  });
  if (ended.size() <= options_.ended_max) return;
  std::ranges::sort(ended);
  ended.resize(ended.size() - options_.ended_max);
  for (const auto& [time, id] : ended) {
    if (Status status = journal_.remove(id); !status.ok()) {
      log_warn("an old preload cannot be removed", {{"error", status.to_string()}});
    }
    preloads_.erase(id);
  }
}

}  // namespace millrace
