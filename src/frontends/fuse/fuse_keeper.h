#pragma once

#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// A mount as the keeper has it: what the next daemon needs to go on with it.
struct KeptMount {
  std::string number;  // Of the file system (mount_table.h).
  std::string facts;   // The daemon's own, kept word for word.
  File device;
  File opens;
};

// The keeper is a small process of its own that holds the devices of all mounts. As long as it
// does, a daemon that is killed leaves no dead mount: readers wait, and the keeper starts a new
// daemon, which takes the mounts over. docs/formats/keeper.md has what the two say to each other.
//
// This is the daemon's side. While the connection lives the keeper knows that it is served. Safe
// from any thread; calls block for as long as the keeper needs, which is not long.
class FuseKeeper {
 public:
  // The one that listens there. kNotFound when there is none.
  static Result<FuseKeeper> connect(const std::string& socket);
  // Starts one, which starts `command` again if this process is killed. None may be at the path:
  // the one before has gone, or has answered leave().
  static Result<FuseKeeper> start(const std::string& socket,
                                  const std::vector<std::string>& command);

  FuseKeeper(FuseKeeper&& other) noexcept : connection_(std::move(other.connection_)) {}

  // All fail with kUnavailable when the keeper has gone. kCorruption when its answer cannot be
  // taken, as by a process that may not open so many files: it has the mounts still.
  Result<std::vector<KeptMount>> kept() MR_EXCLUDES(mutex_);
  Status keep(const std::string& number, const std::string& facts, int device, int opens)
      MR_EXCLUDES(mutex_);
  Status let_go(const std::string& number) MR_EXCLUDES(mutex_);
  // This process has taken over what was kept: if it dies, that is another kill.
  Status serve() MR_EXCLUDES(mutex_);
  // This process ends on purpose: it is not to be started again.
  Status leave() MR_EXCLUDES(mutex_);

  // It was killed, or ended. Does not wait; who wants to wait polls the descriptor for POLLRDHUP.
  bool is_gone() const;
  int descriptor() const { return connection_.descriptor(); }

 private:
  explicit FuseKeeper(File connection) : connection_(std::move(connection)) {}

  Mutex mutex_;  // One question at a time.
  File connection_;
};

}  // namespace millrace
