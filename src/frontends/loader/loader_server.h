#pragma once

#include <list>
#include <memory>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "frontends/loader/loader_connection.h"
#include "platform/file.h"
#include "platform/listening_socket.h"

namespace millrace {

// Gives samples to loaders of this machine, over a Unix socket: docs/formats/loader_socket.md.
//
// Every connection has a thread and memory of its own, so that who hangs blocks nobody else; one
// that ends is noticed at once, and what it has is let go, whatever it was doing. Nothing is kept
// for a loader that is not connected.
//
// Lifecycle: serves from start() to stop(). Safe from any thread but for stop(), which has one
// caller.
class LoaderServer {
 public:
  struct Options {
    std::string socket;
    std::size_t connections_max = 1024;
  };
  // What the parts refer to outlives it. kConflict when somebody listens there.
  static Result<std::unique_ptr<LoaderServer>> start(LoaderService parts, Options options);
  ~LoaderServer();
  LoaderServer(const LoaderServer&) = delete;
  LoaderServer& operator=(const LoaderServer&) = delete;

  // Takes nobody new and calls off all that is under way.
  void stop();

  std::size_t connections() const MR_EXCLUDES(mutex_);

 private:
  struct Served {
    std::shared_ptr<LoaderConnection> connection;
    std::thread thread;
    bool called_off = false;
  };

  LoaderServer(LoaderService parts, Options options, ListeningSocket socket, File wake);
  // Accepts, and notices who has gone.
  void watch();
  void accept_all() MR_EXCLUDES(mutex_);
  void forget_ended() MR_EXCLUDES(mutex_);
  void wake_up() const;

  const LoaderService parts_;
  const Options options_;
  Gauge& connection_count_;
  const ListeningSocket socket_;
  const File wake_;
  LossesOfJobs losses_;

  mutable Mutex mutex_;
  std::list<Served> served_ MR_GUARDED_BY(mutex_);
  bool stopping_ MR_GUARDED_BY(mutex_) = false;

  // Last: it uses all of the above as soon as it is there.
  std::thread watcher_;
};

}  // namespace millrace
