#include "frontends/loader/loader_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "platform/file_error.h"

namespace millrace {

Result<std::unique_ptr<LoaderServer>> LoaderServer::start(LoaderService parts, Options options) {
  MR_ASSIGN_OR_RETURN(ListeningSocket socket,
                      ListeningSocket::unix_socket(options.socket, SOCK_SEQPACKET));
  File wake = File::adopt(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "loader server");
  if (!wake.is_open()) return failure(file_error(errno, "make", "eventfd"));
  return std::unique_ptr<LoaderServer>(
      new LoaderServer(std::move(parts), std::move(options), std::move(socket), std::move(wake)));
}

LoaderServer::LoaderServer(LoaderService parts, Options options, ListeningSocket socket, File wake)
    : parts_(std::move(parts)),
      options_(std::move(options)),
      connection_count_(parts_.metrics.gauge(MetricId::kLoaderConnections)),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      watcher_([this] { watch(); }) {}

LoaderServer::~LoaderServer() { stop(); }

void LoaderServer::stop() {
  {
    MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    for (Served& each : served_)
      each.connection->call_off();
  }
  wake_up();
  watcher_.join();
  // Nobody accepts any more.
  std::list<Served> ending;
  {
    MutexLock lock(mutex_);
    ending.swap(served_);
  }
  for (Served& each : ending)
    each.thread.join();
  connection_count_.set(0);
}

std::size_t LoaderServer::connections() const {
  MutexLock lock(mutex_);
  return served_.size();
}

void LoaderServer::wake_up() const {
  const std::uint64_t one = 1;
  (void)!::write(wake_.descriptor(), &one, sizeof(one));
}

void LoaderServer::watch() {
  for (;;) {
    std::vector<pollfd> entries = {{socket_.descriptor(), POLLIN, 0},
                                   {wake_.descriptor(), POLLIN, 0}};
    std::vector<Served*> watched;
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      for (Served& each : served_) {
        if (each.called_off) continue;
        entries.push_back({each.connection->descriptor(), POLLRDHUP, 0});
        watched.push_back(&each);
      }
    }
    (void)::poll(entries.data(), entries.size(), -1);
    std::uint64_t wakes = 0;
    (void)!::read(wake_.descriptor(), &wakes, sizeof(wakes));
    {
      MutexLock lock(mutex_);
      if (stopping_) return;
      for (std::size_t n = 0; n < watched.size(); ++n) {
        // Elements of the list stay where they are, and only this thread removes them.
        if (entries[n + 2].revents == 0) continue;
        watched[n]->called_off = true;
        watched[n]->connection->call_off();
      }
    }
    forget_ended();
    if ((entries[0].revents & POLLIN) != 0) accept_all();
  }
}

void LoaderServer::forget_ended() {
  std::list<Served> ended;
  {
    MutexLock lock(mutex_);
    for (auto it = served_.begin(); it != served_.end();) {
      const auto next = std::next(it);
      if (it->connection->ended()) ended.splice(ended.end(), served_, it);
      it = next;
    }
    connection_count_.set(static_cast<std::int64_t>(served_.size()));
  }
  for (Served& each : ended)
    each.thread.join();
}

void LoaderServer::accept_all() {
  for (;;) {
    auto accepted = socket_.accept();
    if (!accepted) {
      log_warn("a loader cannot be served", {{"error", accepted.error().to_string()}});
      return;
    }
    if (!*accepted) return;
    MutexLock lock(mutex_);
    if (stopping_) return;
    const bool full = served_.size() >= options_.connections_max;
    // Threads of their own may wait for their client.
    (void)::fcntl((*accepted)->socket.descriptor(), F_SETFL, 0);
    auto connection =
        std::make_shared<LoaderConnection>(std::move(**accepted), parts_, losses_, full);
    Served& each = served_.emplace_back();
    each.connection = connection;
    connection_count_.set(static_cast<std::int64_t>(served_.size()));
    each.thread = std::thread([this, connection] {
      connection->serve();
      wake_up();
    });
  }
}

}  // namespace millrace
