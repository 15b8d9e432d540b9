#include "cli/interrupt.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdint>

#include "cli/exit_code.h"

namespace millrace::cli {
namespace {

constexpr int kGraceMs = 10'000;

}  // namespace

Interrupt::Interrupt(std::shared_ptr<Cancellation> cancellation)
    : cancellation_(std::move(cancellation)), grace_ms_(kGraceMs) {
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
  wake_fd_ = ::eventfd(0, EFD_CLOEXEC);
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  // Hang-ups are for the commands' own threads: whoever waits for one blocks it there.
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  sigset_t before;
  ::pthread_sigmask(SIG_BLOCK, &hangup, &before);
  thread_ = std::thread([this] { watch(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Interrupt::expect(Duration grace) {
  grace_ms_ =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(grace).count());
  expected_ = true;
}

Interrupt::~Interrupt() {
  ::eventfd_write(stop_fd_, 1);
  thread_.join();
  ::close(signal_fd_);
  ::close(wake_fd_);
  ::close(stop_fd_);
}

void Interrupt::watch() {
  pollfd fds[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
  int timeout_ms = -1;
  while (true) {
    const int ready = ::poll(fds, 2, timeout_ms);
    if (ready < 0) continue;  // EINTR
    if ((fds[1].revents & POLLIN) != 0) return;
    if (ready == 0) ::_exit(kExitSignalBase + signal_.load());
    signalfd_siginfo info{};
    if (::read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    if (const pid_t child = child_.load(); child != 0) {
      // The kernel itself sends what is typed on a terminal, to all of the group in front.
      if (info.ssi_code != SI_KERNEL) ::kill(child, number);
      continue;
    }
    if (signal_.exchange(number) != 0) ::_exit(kExitSignalBase + number);
    timeout_ms = grace_ms_.load();
    ::eventfd_write(wake_fd_, 1);
    cancellation_->request();
  }
}

}  // namespace millrace::cli
