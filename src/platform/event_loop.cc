#include "platform/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/log.h"

namespace millrace {
namespace {

constexpr int kEventsPerWait = 256;

std::uint32_t to_epoll(std::uint32_t interest) {
  std::uint32_t events = 0;
  if (interest & EventLoop::kRead) events |= EPOLLIN;
  if (interest & EventLoop::kWrite) events |= EPOLLOUT;
  return events;
}

std::uint32_t from_epoll(std::uint32_t events) {
  if (events & (EPOLLERR | EPOLLHUP)) return EventLoop::kRead | EventLoop::kWrite;
  std::uint32_t ready = 0;
  if (events & EPOLLIN) ready |= EventLoop::kRead;
  if (events & EPOLLOUT) ready |= EventLoop::kWrite;
  return ready;
}

// The descriptor and its generation travel in the 64 bits that epoll hands back.
std::uint64_t pack(int fd, std::uint32_t generation) {
  return (std::uint64_t{generation} << 32) | static_cast<std::uint32_t>(fd);
}

}  // namespace

EventLoop::EventLoop(std::string name, std::size_t queued_tasks_max)
    : name_(std::move(name)), queued_tasks_max_(queued_tasks_max) {
  epoll_fd_ = ::epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (epoll_fd_ < 0 || wake_fd_ < 0) {
    // Out of descriptors at start-up: there is no loop to run anything on.
    throw std::runtime_error("cannot create an event loop: " + std::string(std::strerror(errno)) +
                             "; raise the limit on open files (ulimit -n)");
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = pack(wake_fd_, 0);
  ::epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, wake_fd_, &event);
  thread_ = std::thread([this] { run(); });
}

EventLoop::~EventLoop() {
  assert(!on_loop_thread());
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  wake();
  thread_.join();
  ::close(wake_fd_);
  ::close(epoll_fd_);
}

Status EventLoop::submit(Task task) {
  bool was_empty = false;
  {
    MutexLock lock(mutex_);
    if (stopping_ || posted_.size() >= queued_tasks_max_) {
      return {StatusCode::kResourceExhausted,
              "the event loop '" + name_ + (stopping_ ? "' is stopping" : "' has a full queue")};
    }
    was_empty = posted_.empty();
    posted_.push_back(std::move(task));
  }
  if (was_empty && !on_loop_thread()) wake();
  return {};
}

void EventLoop::resume(Task task) {
  bool was_empty = false;
  {
    MutexLock lock(mutex_);
    was_empty = posted_.empty();
    posted_.push_back(std::move(task));
  }
  // One wake-up serves all tasks that are posted until the loop takes them, and the loop itself
  // looks before it sleeps.
  if (was_empty && !on_loop_thread()) wake();
}

void EventLoop::wake() {
  const std::uint64_t one = 1;
  // Can only fail when the counter is full, and then the loop is awake anyway.
  [[maybe_unused]] const auto written = ::write(wake_fd_, &one, sizeof(one));
}

void EventLoop::tell_kernel(int operation, int fd, Watch& watch, std::uint32_t interest) {
  epoll_event event{};
  event.events = to_epoll(interest);
  event.data.u64 = pack(fd, watch.generation);
  if (::epoll_ctl(epoll_fd_, operation, fd, &event) != 0) {
    log_error("epoll_ctl failed", {{"loop", name_}, {"fd", fd}, {"error", std::strerror(errno)}});
    return;
  }
  watch.kernel_interest = interest;
}

void EventLoop::watch(int fd, std::uint32_t interest, Ready ready) {
  assert(interest != 0 && !watches_.contains(fd));
  Watch& watch = watches_[fd];
  watch.interest = interest;
  watch.generation = next_generation_++;
  watch.ready = std::make_shared<Ready>(std::move(ready));
  tell_kernel(EPOLL_CTL_ADD, fd, watch, interest);
}

void EventLoop::set_interest(int fd, std::uint32_t interest) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  Watch& watch = found->second;
  watch.interest = interest;
  if (interest == 0 || interest == watch.kernel_interest) return;
  tell_kernel(watch.kernel_interest == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, watch, interest);
}

void EventLoop::unwatch(int fd) {
  const auto found = watches_.find(fd);
  if (found == watches_.end()) return;
  if (found->second.kernel_interest != 0) ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
  watches_.erase(found);
}

void EventLoop::dispatch(int fd, std::uint32_t generation, std::uint32_t events) {
  const auto found = watches_.find(fd);
  if (found == watches_.end() || found->second.generation != generation) return;
  Watch& watch = found->second;
  if (watch.interest == 0) {
    // The owner had paused. Hang-ups are reported whatever the interest, so the descriptor leaves
    // epoll altogether, or the loop would spin; set_interest brings it back.
    ::epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, fd, nullptr);
    watch.kernel_interest = 0;
    events = 0;
  }
  const std::shared_ptr<Ready> callback = watch.ready;
  (*callback)(from_epoll(events));
}

EventLoop::TimerId EventLoop::run_at(TimePoint when, Task task) {
  const TimerId id = next_timer_id_++;
  timers_.emplace(when, std::pair(id, std::move(task)));
  timer_times_.emplace(id, when);
  return id;
}

void EventLoop::cancel_timer(TimerId id) {
  const auto found = timer_times_.find(id);
  if (found == timer_times_.end()) return;
  const auto [first, last] = timers_.equal_range(found->second);
  timer_times_.erase(found);
  for (auto it = first; it != last; ++it) {
    if (it->second.first != id) continue;
    timers_.erase(it);
    return;
  }
}

int EventLoop::next_timeout_ms() const {
  if (timers_.empty()) return -1;
  const auto left = timers_.begin()->first - system_clock().now();
  if (left <= Duration::zero()) return 0;
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::min<std::int64_t>(ms, 60'000));
}

void EventLoop::run_due_timers() {
  if (timers_.empty()) return;
  const TimePoint now = system_clock().now();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    auto node = timers_.extract(timers_.begin());
    timer_times_.erase(node.mapped().first);
    node.mapped().second();
  }
}

void EventLoop::run_posted() {
  {
    MutexLock lock(mutex_);
    running_.swap(posted_);
  }
  for (Task& task : running_)
    task();
  running_.clear();
}

bool EventLoop::has_posted() {
  MutexLock lock(mutex_);
  return !posted_.empty();
}

void EventLoop::run() {
  ::pthread_setname_np(::pthread_self(), name_.substr(0, 15).c_str());
  std::array<epoll_event, kEventsPerWait> events;
  while (true) {
    const int timeout_ms = has_posted() ? 0 : next_timeout_ms();
    const int count = ::epoll_wait(epoll_fd_, events.data(), kEventsPerWait, timeout_ms);
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const int fd = static_cast<int>(event.data.u64 & 0xffffffffU);
      if (fd == wake_fd_) {
        std::uint64_t ignored = 0;
        [[maybe_unused]] const auto got = ::read(wake_fd_, &ignored, sizeof(ignored));
        continue;
      }
      dispatch(fd, static_cast<std::uint32_t>(event.data.u64 >> 32), event.events);
    }
    run_due_timers();
    run_posted();
    MutexLock lock(mutex_);
    if (stopping_ && posted_.empty()) return;
  }
}

}  // namespace millrace
