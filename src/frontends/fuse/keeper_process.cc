#include "frontends/fuse/keeper_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "frontends/fuse/fuse_device.h"
#include "frontends/fuse/fuse_mount.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

void set_oom_score(const std::string& score) {
  if (!score.empty()) std::ofstream(kOomScore) << score;
}

std::string refusal(std::string_view why) { return Json({{"error", why}}).dump(); }

}  // namespace

KeeperProcess::KeeperProcess(File listener, File daemon, KeeperOptions options)
    : listener_(std::move(listener)), options_(std::move(options)), daemon_(std::move(daemon)) {}

void KeeperProcess::run() {
  while (!is_over()) {
    std::array<pollfd, 2> watched{{{listener_.descriptor(), POLLIN, 0},
                                   {daemon_.is_open() ? daemon_.descriptor() : -1, POLLIN, 0}}};
    const int ready = ::poll(watched.data(), watched.size(), wait_ms());
    if (ready < 0 && errno != EINTR) break;
    reap();
    if (ready > 0 && watched[1].revents != 0) serve_daemon();
    if (ready > 0 && watched[0].revents != 0) accept_daemon();
    const TimePoint now = system_clock().now();
    if (!daemon_.is_open() && now - alone_since_ >= options_.alone_max) break;
    if (!daemon_.is_open() && now >= next_start_) restart();
  }
  give_up();
  unlink_socket();
}

void KeeperProcess::unlink_socket() {
  if (has_path_) ::unlink(options_.socket.c_str());
  has_path_ = false;
}

int KeeperProcess::wait_ms() const {
  if (daemon_.is_open()) return -1;
  // A child that dies is noticed at the latest now: it is not worth a signal handler.
  constexpr Duration kLook = std::chrono::milliseconds(100);
  const TimePoint now = system_clock().now();
  const Duration left = std::min({alone_since_ + options_.alone_max - now, kLook,
                                  next_start_ == TimePoint::max() ? kLook : next_start_ - now});
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  return static_cast<int>(std::max<std::int64_t>(ms, 0));
}

void KeeperProcess::accept_daemon() {
  const int descriptor = ::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC);
  if (descriptor < 0) return;
  File connection = File::adopt(descriptor, "connection of a daemon");
  // The lock on the cache sees to it that there is one; the newest is the one that lives.
  if (daemon_.is_open()) lose_daemon();
  daemon_ = std::move(connection);
  came_ = system_clock().now();
  is_serving_ = false;
  is_leaving_ = false;
  next_start_ = TimePoint::max();
  pause_ = kFirstPause;
}

void KeeperProcess::serve_daemon() {
  Result<PassedMessage> message = receive_files(daemon_.descriptor(), 2);
  // One that cannot be taken says nothing about the daemon, which lives and serves.
  const bool is_spoilt = !message && message.error() == StatusCode::kCorruption;
  if (!is_spoilt && (!message || message->is_end)) return lose_daemon();
  const std::string answer = is_spoilt ? refusal(message.error().message())
                                       : this->answer(message->text, std::move(message->files));
  if (!send_files(daemon_.descriptor(), answer, {}).ok()) lose_daemon();
}

std::string KeeperProcess::answer(const std::string& question, std::vector<File> files) {
  const Json asked = Json::parse(question, nullptr, false);
  if (!asked.is_object()) return refusal("expected a JSON object");
  const std::string what = asked.value("do", "");
  const std::string number = asked.value("mount", "");
  if (what == "list") {
    list();
    return Json({{"end", true}}).dump();
  }
  if (what == "keep") {
    if (files.size() != 2 || number.empty()) return refusal("keep needs a mount and two files");
    mounts_.insert_or_assign(
        number, Mount{asked.value("facts", ""), std::move(files[0]), std::move(files[1])});
  } else if (what == "let_go") {
    mounts_.erase(number);
  } else if (what == "serve") {
    is_serving_ = true;
  } else if (what == "leave") {
    is_leaving_ = true;
    if (mounts_.empty()) unlink_socket();
  } else {
    return refusal("unknown: " + what);
  }
  return Json({{"done", what}}).dump();
}

void KeeperProcess::list() {
  for (const auto& [number, mount] : mounts_) {
    const Status sent =
        send_files(daemon_.descriptor(), Json({{"mount", number}, {"facts", mount.facts}}).dump(),
                   {mount.device.descriptor(), mount.opens.descriptor()});
    if (!sent.ok()) return;  // It has gone, as the next receive says.
  }
}

void KeeperProcess::lose_daemon() {
  daemon_.close();
  const TimePoint now = system_clock().now();
  // To readers, one that dies before it serves has not come.
  if (is_serving_ || now - came_ >= kServingAfter) alone_since_ = now;
  const bool starts = !is_leaving_ && !options_.command.empty();
  next_start_ = starts ? std::max(now, last_start_ + kBetweenStarts) : TimePoint::max();
  if (!mounts_.empty() && !is_leaving_) {
    log_warn("the daemon was killed; its mounts wait for the next one",
             {{"mounts", mounts_.size()}});
  }
}

void KeeperProcess::restart() {
  const TimePoint now = system_clock().now();
  next_start_ = now + pause_;
  if (child_ != 0) return;  // It is slow to come.
  last_start_ = now;
  pause_ = std::min(pause_ * 2, kPauseMax);
  std::vector<char*> argv;
  for (const std::string& argument : options_.command)
    argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  child_ = ::fork();
  if (child_ < 0) {
    child_ = 0;
    return;
  }
  if (child_ != 0) return;
  // The new daemon asks for the devices. The listener must not live on in it: who connects after
  // our end would wait for ever.
  ::close_range(STDERR_FILENO + 1, ~0U, 0);
  ::setsid();
  set_oom_score(options_.daemon_oom_score);
  ::execvp(argv.front(), argv.data());
  ::_exit(EXIT_FAILURE);
}

void KeeperProcess::reap() {
  if (child_ == 0 || ::waitpid(child_, nullptr, WNOHANG) != child_) return;
  child_ = 0;
}

void KeeperProcess::give_up() {
  for (auto& [number, mount] : mounts_) {
    // One that has ended meanwhile left its number to others.
    if (!is_fuse_connected(mount.device.descriptor())) continue;
    const std::vector<ListedMount> places = places_of(number);
    log_error("a mount is given up, since no daemon came to serve it",
              {{"mount", places.empty() ? number : places.front().directory}});
    mount.device.close();  // Whoever waits gets an error now.
    static_cast<void>(detach_fuse(number));
  }
  mounts_.clear();
}

}  // namespace millrace
