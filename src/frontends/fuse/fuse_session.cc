#include "frontends/fuse/fuse_session.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include "base/log.h"
#include "frontends/fuse/fuse_attempt.h"
#include "frontends/fuse/fuse_init.h"
#include "frontends/fuse/request_buffer.h"

namespace millrace {
namespace {

// Ends a read of the device that waits. Nobody else uses it, and it does nothing.
constexpr int kWakeSignal = SIGURG;

void handle_wake_signal() {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  ::sigaction(kWakeSignal, &action, nullptr);  // Without SA_RESTART: the read must end.
}

constexpr Duration kWakePause = std::chrono::milliseconds(2);

// The call, when this machine has not what it takes.
std::optional<FuseCall> run_at_hand(FuseOperation operation, FuseCall call,
                                    const FuseRequest& request) {
  FuseAtHandAttempt attempt(call);
  operation(std::move(call), request);
  return attempt.handed_back();
}

}  // namespace

FuseSession::FuseSession(FuseDevice device, OpenTable table, const FuseView& view,
                         const FuseParts& parts)
    : connection_(std::move(device), std::move(table), view, parts) {}

FuseSession::~FuseSession() { stop(connection_.parts.clock.now()); }

Status FuseSession::start() {
  handle_wake_signal();
  add_thread();
  if (running_ != 0 || over_) return {};
  return {StatusCode::kResourceExhausted, "no thread can be started to serve a mount"};
}

Status FuseSession::take_over() {
  connection_.files.resume();
  MR_RETURN_IF_ERROR(connection_.device.resend());
  MR_RETURN_IF_ERROR(start());
  // It may read gigabytes, and nobody waits for it.
  try {
    holding_ = std::thread([this] { connection_.files.hold_again(hold_context_); });
  } catch (const std::system_error& error) {
    log_warn("no thread can be started to count what the kernel has open",
             {{"error", error.what()}});
  }
  return {};
}

void FuseSession::stop(TimePoint deadline) {
  stopping_ = true;
  std::vector<std::thread> threads;
  {
    MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  while (running_ != 0 || connection_.calls.size() != 0) {
    // A thread may be just about to read: the signal is sent until all are gone.
    for (std::thread& thread : threads)
      ::pthread_kill(thread.native_handle(), kWakeSignal);
    if (connection_.parts.clock.now() >= deadline) connection_.calls.interrupt_all();
    std::this_thread::sleep_for(kWakePause);
  }
  for (std::thread& thread : threads)
    thread.join();
  hold_context_.cancellation().request();
  if (holding_.joinable()) holding_.join();
}

void FuseSession::add_thread() {
  MutexLock lock(mutex_);
  if (stopping_ || running_ >= kThreadsMax) return;
  ++running_;
  ++idle_;
  try {
    threads_.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    --idle_;
    --running_;
    // The next request tries again.
    if (std::exchange(lacks_threads_, true)) return;
    log_warn("a mount has fewer threads than it needs, since no more can be started",
             {{"threads", running_.load()}, {"error", error.what()}});
  }
}

template <class Work>
void FuseSession::run_busy(const Work& work) {
  if (--idle_ == 0) add_thread();
  work();
  ++idle_;
}

void FuseSession::serve() {
  const FuseReplies::TakesRequests marked;
  RequestBuffer buffer;
  while (!stopping_) {
    if (waiting_count_ != 0) {
      run_busy([this] { try_waiting_again(); });
      if (!connection_.device.wait(kBetweenTries)) continue;
    }
    std::size_t length = 0;
    const FuseDevice::Received received = connection_.device.receive(buffer.bytes(), length);
    if (received == FuseDevice::Received::kNothing) continue;
    if (received == FuseDevice::Received::kUnmounted) {
      over_ = true;
      connection_.parts.ended();
      break;
    }
    run_busy([&] { dispatch(buffer.bytes().first(length)); });
  }
  --idle_;
  --running_;
}

void FuseSession::dispatch(ByteView bytes) {
  const Result<FuseRequest> request = FuseRequest::parse(bytes);
  if (!request) {
    log_error("a request of the kernel makes no sense", {{"error", request.error().message()}});
    return;
  }
  const fuse_in_header& header = request->header();
  Metrics& metrics = connection_.parts.metrics;
  const auto count = [&metrics](FuseMetricOperation operation) {
    metrics.counter(MetricId::kFuseRequests, {static_cast<std::size_t>(operation)}).add();
  };
  switch (header.opcode) {
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
      // Numbers say by themselves what they are, so there is nothing to forget; no answer either.
      count(FuseMetricOperation::kForget);
      return;
    case FUSE_INIT:
      return initialise(*request);
    case FUSE_INTERRUPT:
      return interrupt(*request);
    case FUSE_DESTROY:
      return connection_.device.answer(header.unique);
    default:
      break;
  }
  const FuseHandler handler = fuse_handler(header.opcode);
  count(handler.counted);
  if (handler.operation == nullptr) return connection_.device.fail(header.unique, ENOSYS);
  FuseCall call(connection_, header);
  if (begin_call()) {
    handler.operation(std::move(call), *request);
    end_call();
  } else {
    try_at_hand({handler.operation, std::move(call), {bytes.begin(), bytes.end()}});
  }
  run_waiting();
}

bool FuseSession::begin_call() {
  std::size_t running = calls_at_once_;
  do {
    // One thread is left; where there is only one, it does both.
    if (running >= std::max<std::size_t>(running_, 2) - 1) return false;
  } while (!calls_at_once_.compare_exchange_weak(running, running + 1));
  return true;
}

// Whoever adds a call looks afterwards whether a thread is free, and who becomes free looks
// afterwards whether a call waits; so one of them sees the other, and no call is left.
void FuseSession::run_waiting() {
  while (waiting_count_ != 0 && begin_call()) {
    if (std::optional<WaitingCall> next = take_waiting()) {
      const Result<FuseRequest> request = FuseRequest::parse(next->request);
      if (request) next->operation(std::move(next->call), *request);
    }
    end_call();
  }
}

void FuseSession::try_at_hand(WaitingCall waiting) {
  const RequestContext& context = waiting.call.context();
  if (const Status ended = context.check(connection_.parts.clock); !ended.ok()) {
    return waiting.call.fail(ended, FuseAttempt::kNode);
  }
  const Result<FuseRequest> request = FuseRequest::parse(waiting.request);
  if (!request) return;  // Cannot be: it was parsed before. The call fails.
  std::optional<FuseCall> call = run_at_hand(waiting.operation, std::move(waiting.call), *request);
  if (call) {
    add_waiting({waiting.operation, *std::move(call), std::move(waiting.request), waiting.place});
  }
}

// Each in its turn, also when there is no time for all of them at once.
void FuseSession::try_waiting_again() {
  const TimePoint now = connection_.parts.clock.now();
  TimePoint due = next_try_;
  if (now < due || !next_try_.compare_exchange_strong(due, now + kBetweenTries)) return;
  for (std::size_t tries = waiting_count_; tries > 0; --tries) {
    std::optional<WaitingCall> next = take_waiting_behind(last_tried_);
    if (!next) break;
    last_tried_ = next->place;
    try_at_hand(*std::move(next));
    if (connection_.parts.clock.now() >= now + kTryingMax) break;
  }
  run_waiting();
}

// Whoever adds a call looks afterwards whether it was called off, and who calls one off looks
// afterwards whether it waits: so whoever is killed meanwhile is let go.
void FuseSession::add_waiting(WaitingCall waiting) {
  const std::uint64_t unique = waiting.call.unique();
  const std::shared_ptr<Cancellation> cancellation = waiting.call.context().shared_cancellation();
  {
    MutexLock lock(mutex_);
    if (waiting.place == 0) waiting.place = ++last_place_;
    const std::uint64_t place = waiting.place;
    waiting_.emplace(place, std::move(waiting));
    ++waiting_count_;
  }
  if (cancellation->requested()) call_off(unique);
}

std::optional<FuseSession::WaitingCall> FuseSession::take_waiting() {
  MutexLock lock(mutex_);
  return take_waiting(waiting_.begin());
}

std::optional<FuseSession::WaitingCall> FuseSession::take_waiting_behind(std::uint64_t place) {
  MutexLock lock(mutex_);
  const auto behind = waiting_.upper_bound(place);
  return take_waiting(behind == waiting_.end() ? waiting_.begin() : behind);
}

std::optional<FuseSession::WaitingCall> FuseSession::take_waiting_of(std::uint64_t unique) {
  MutexLock lock(mutex_);
  return take_waiting(std::ranges::find_if(
      waiting_, [unique](const auto& entry) { return entry.second.call.unique() == unique; }));
}

std::optional<FuseSession::WaitingCall> FuseSession::take_waiting(WaitingCalls::iterator found) {
  if (found == waiting_.end()) return std::nullopt;
  std::optional<WaitingCall> taken(std::move(found->second));
  waiting_.erase(found);
  --waiting_count_;
  return taken;
}

void FuseSession::initialise(const FuseRequest& request) {
  const Result<fuse_kernel::InitOut> out = fuse_init_answer(request, connection_.view);
  if (!out) {
    log_error("the kernel's FUSE cannot be used", {{"error", out.error().message()}});
    return connection_.device.fail(request.header().unique, EPROTO);
  }
  connection_.device.answer(request.header().unique, std::as_bytes(std::span(&*out, 1)));
}

void FuseSession::interrupt(const FuseRequest& request) {
  const Result<fuse_interrupt_in> in = request.body<fuse_interrupt_in>();
  // EAGAIN: it is just being taken, or was just answered; the kernel asks again in the first case.
  if (!in || !interrupts_.add(in->unique)) {
    return connection_.device.fail(request.header().unique, EAGAIN);
  }
}

void FuseSession::call_off(std::uint64_t unique) {
  connection_.calls.interrupt(unique);
  if (std::optional<WaitingCall> waiting = take_waiting_of(unique)) waiting->call.fail_with(EINTR);
}

}  // namespace millrace
