#include "frontends/fuse/fuse_keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "frontends/fuse/keeper_process.h"
#include "platform/file_error.h"
#include "platform/listening_socket.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

using Json = nlohmann::json;

Status gone() { return {StatusCode::kUnavailable, "the keeper of mounts has gone"}; }

Result<Json> parse_answer(const Result<PassedMessage>& received) {
  // An answer that cannot be taken is none of a keeper that has gone: it has the mounts still.
  if (!received && received.error() == StatusCode::kCorruption) return failure(received.error());
  if (!received || received->is_end) return failure(gone());
  const PassedMessage& message = *received;
  Json answer = Json::parse(message.text, nullptr, false);
  if (!answer.is_object()) {
    return failure(StatusCode::kCorruption, "the keeper of mounts answered with no JSON object");
  }
  if (answer.contains("error")) {
    return failure(StatusCode::kInternal, "keeper of mounts: " + answer.value("error", ""));
  }
  return answer;
}

Status ask(int connection, const Json& question, const std::vector<int>& files) {
  if (!send_files(connection, question.dump(), files).ok()) return gone();
  const Result<Json> answer = parse_answer(receive_files(connection));
  return answer ? Status() : answer.error();
}

// In the child of a fork, so only what is safe there: a keeper that is nobody's child.
[[noreturn]] void become_keeper(int listener, int daemon, char* const* argv) {
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  // Above both places first, so that neither is put where the other still is.
  listener = ::fcntl(listener, F_DUPFD_CLOEXEC, kKeeperDaemon + 1);
  daemon = ::fcntl(daemon, F_DUPFD_CLOEXEC, kKeeperDaemon + 1);
  ::dup2(listener, kKeeperListener);
  ::dup2(daemon, kKeeperDaemon);
  // Not the daemon's files, its locks above all.
  ::close_range(kKeeperDaemon + 1, ~0U, 0);
  ::execv("/proc/self/exe", argv);
  ::_exit(EXIT_FAILURE);
}

}  // namespace

Result<FuseKeeper> FuseKeeper::connect(const std::string& socket) {
  MR_ASSIGN_OR_RETURN(File connection, connect_unix_socket(socket, SOCK_SEQPACKET));
  return FuseKeeper(std::move(connection));
}

Result<FuseKeeper> FuseKeeper::start(const std::string& socket,
                                     const std::vector<std::string>& command) {
  // Who starts a keeper has the lock of the cache, so nobody else is at the path; a killed keeper
  // may have left it. It is made here, so that there is no time in which the next daemon misses it.
  ::unlink(socket.c_str());
  MR_ASSIGN_OR_RETURN(const File listener, bind_unix_socket(socket, SOCK_SEQPACKET));
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
    return failure(file_error(errno, "connect to", "the keeper of mounts"));
  }
  File ours = File::adopt(sockets[0], "the keeper of mounts");
  const File theirs = File::adopt(sockets[1], "the daemon of a keeper");
  std::vector<std::string> arguments{"millrace", "keeper", "--socket", socket, "--"};
  arguments.insert(arguments.end(), command.begin(), command.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments)
    argv.push_back(argument.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) return failure(file_error(errno, "start", "the keeper of mounts"));
  if (child == 0) become_keeper(listener.descriptor(), theirs.descriptor(), argv.data());
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return FuseKeeper(std::move(ours));
}

Result<std::vector<KeptMount>> FuseKeeper::kept() {
  MutexLock lock(mutex_);
  const int connection = connection_.descriptor();
  if (!send_files(connection, Json({{"do", "list"}}).dump(), {}).ok()) return failure(gone());
  std::vector<KeptMount> mounts;
  while (true) {
    Result<PassedMessage> message = receive_files(connection);
    MR_ASSIGN_OR_RETURN(const Json answer, parse_answer(message));
    if (answer.contains("end")) return mounts;
    if (message->files.size() != 2 || !answer.contains("mount") || !answer.contains("facts")) {
      return failure(StatusCode::kCorruption, "the keeper of mounts sent half a mount");
    }
    mounts.push_back({.number = answer.value("mount", ""),
                      .facts = answer.value("facts", ""),
                      .device = std::move(message->files[0]),
                      .opens = std::move(message->files[1])});
  }
}

Status FuseKeeper::keep(const std::string& number, const std::string& facts, int device,
                        int opens) {
  MutexLock lock(mutex_);
  return ask(connection_.descriptor(), {{"do", "keep"}, {"mount", number}, {"facts", facts}},
             {device, opens});
}

Status FuseKeeper::let_go(const std::string& number) {
  MutexLock lock(mutex_);
  return ask(connection_.descriptor(), {{"do", "let_go"}, {"mount", number}}, {});
}

Status FuseKeeper::serve() {
  MutexLock lock(mutex_);
  return ask(connection_.descriptor(), {{"do", "serve"}}, {});
}

Status FuseKeeper::leave() {
  MutexLock lock(mutex_);
  return ask(connection_.descriptor(), {{"do", "leave"}}, {});
}

bool FuseKeeper::is_gone() const {
  pollfd watched{connection_.descriptor(), POLLRDHUP, 0};
  return ::poll(&watched, 1, 0) > 0;
}

}  // namespace millrace
