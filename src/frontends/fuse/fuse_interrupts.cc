#include "frontends/fuse/fuse_interrupts.h"

#include <charconv>
#include <csignal>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "platform/file.h"

namespace millrace {
namespace {

constexpr std::uint64_t bit(int signal) { return std::uint64_t{1} << (signal - 1); }

// Where a signal's default is to end the process, the kernel sends SIGKILL to all its threads at
// once; unless a core is to be written first, which begins only when the thread waits no more.
constexpr std::uint64_t kCoreSignals = bit(SIGQUIT) | bit(SIGILL) | bit(SIGTRAP) | bit(SIGABRT) |
                                       bit(SIGBUS) | bit(SIGFPE) | bit(SIGSEGV) | bit(SIGXCPU) |
                                       bit(SIGXFSZ) | bit(SIGSYS);

// 0 where it is not told.
std::uint64_t signals_in(std::string_view status, std::string_view field) {
  const std::size_t line = status.find(fmt::format("\n{}:\t", field));
  if (line == std::string_view::npos) return 0;
  const char* const text = status.data() + line + field.size() + 3;
  std::uint64_t signals = 0;
  std::from_chars(text, status.data() + status.size(), signals, 16);
  return signals;
}

bool dies(std::uint32_t thread) {
  const Result<std::string> status = read_file(fmt::format("/proc/{}/status", thread));
  // Whom we cannot see may be dying: that it can be killed counts for more.
  return !status || is_about_to_die(*status);
}

}  // namespace

bool is_about_to_die(std::string_view status) {
  const std::uint64_t pending = signals_in(status, "SigPnd") | signals_in(status, "ShdPnd");
  const std::uint64_t kept_off =
      signals_in(status, "SigBlk") | signals_in(status, "SigIgn") | signals_in(status, "SigCgt");
  return (pending & bit(SIGKILL)) != 0 || (pending & kCoreSignals & ~kept_off) != 0;
}

FuseInterrupts::~FuseInterrupts() {
  std::thread watcher;
  {
    MutexLock lock(mutex_);
    ends_ = true;
    changed_.notify_one();
    watcher.swap(watcher_);
  }
  if (watcher.joinable()) watcher.join();
}

bool FuseInterrupts::add(std::uint64_t unique) {
  const std::optional<std::uint32_t> thread = calls_.note_signal(unique);
  if (!thread) return false;
  // That a reader can be killed counts for more than that its signals go unnoticed.
  if (dies(*thread) || !watch_from_now_on()) call_off_(unique);
  return true;
}

bool FuseInterrupts::watch_from_now_on() {
  MutexLock lock(mutex_);
  if (!watcher_.joinable() && !ends_) {
    try {
      watcher_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
      return false;  // This machine has no thread to spare.
    }
  }
  if (!std::exchange(has_some_, true)) changed_.notify_one();
  return true;
}

void FuseInterrupts::watch() {
  MutexLock lock(mutex_);
  while (!ends_) {
    if (!has_some_) {
      changed_.wait(mutex_);
      continue;
    }
    const auto until = std::chrono::steady_clock::now() + kLookAgainAfter;
    while (!ends_ && changed_.wait_until(mutex_, until)) {
    }
    has_some_ = false;
    lock.unlock();
    const bool some_are_left = look_again();
    lock.lock();
    has_some_ = has_some_ || some_are_left;
  }
}

bool FuseInterrupts::look_again() {
  const std::vector<FuseCalls::Signalled> signalled = calls_.signalled();
  for (const FuseCalls::Signalled& call : signalled) {
    if (dies(call.thread)) call_off_(call.unique);
  }
  return !signalled.empty();
}

}  // namespace millrace
