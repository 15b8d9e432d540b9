#pragma once

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "platform/disk_lock.h"
#include "platform/file.h"

namespace millrace {

// A connection that somebody made to us, and who that is: "uid:1000", as the kernel tells it.
struct AcceptedSocket {
  File socket;  // Does not block.
  std::string principal;
};

// A socket that waits for connections. The descriptor does not block, and is closed over exec.
//
// Move-only, thread-compatible. Destruction stops listening and takes the path away.
class ListeningSocket {
 public:
  // A Unix socket that only its owner may connect to. Directories that are missing are made, for
  // the owner alone. What a killed process has left at the path is replaced; kConflict names the
  // process when one listens there; kInvalidArgument when the path is too long, or something else
  // lies there. A lock file beside it, "<path>.lock", stays.
  static Result<ListeningSocket> unix_socket(const std::string& path, int type = SOCK_STREAM);

  ListeningSocket(ListeningSocket&&) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&&) = delete;
  ~ListeningSocket();

  int descriptor() const { return socket_.descriptor(); }
  const std::string& path() const { return socket_.path(); }

  // The next connection, nothing when there is none now. kResourceExhausted when this process has
  // too many open files: the connection stays in the queue.
  Result<std::optional<AcceptedSocket>> accept() const;

  // Stops listening as a kill does: the path stays, with nobody behind it.
  void leave_path() { socket_.close(); }

 private:
  ListeningSocket(File socket, std::unique_ptr<DiskLock> lock)
      : socket_(std::move(socket)), lock_(std::move(lock)) {}

  File socket_;
  std::unique_ptr<DiskLock> lock_;  // Makes sure that nobody else replaces the path.
};

// kInvalidArgument when a path is too long for a Unix socket, or empty.
Status check_unix_path(const std::string& path);

// A Unix socket at a path that must be free, for the owner alone, which already listens.
Result<File> bind_unix_socket(const std::string& path, int type);

// Connects to a Unix socket; the result blocks. kNotFound when nobody listens there.
Result<File> connect_unix_socket(const std::string& path, int type = SOCK_STREAM);

}  // namespace millrace
