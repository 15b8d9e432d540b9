#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// A connection that somebody made to us over the network.
struct AcceptedTcp {
  File socket;  // Does not block, and sends what it is given at once.
  sockaddr_storage peer{};
};

// A TCP socket that waits for connections. The descriptor does not block, and is closed over exec.
//
// Move-only, thread-compatible. Destruction stops listening.
class TcpListener {
 public:
  // At one address of this machine, "0.0.0.0" or "::" for all; port 0 takes any that is free.
  // kInvalidArgument for what is no address, kConflict when somebody listens there.
  static Result<TcpListener> listen(const std::string& address, std::uint16_t port);

  int descriptor() const { return socket_.descriptor(); }
  std::uint16_t port() const { return port_; }

  // The next connection, nothing when there is none now. kResourceExhausted when this process has
  // too many open files: the connection stays in the queue.
  Result<std::optional<AcceptedTcp>> accept() const;

 private:
  TcpListener(File socket, std::uint16_t port) : socket_(std::move(socket)), port_(port) {}

  File socket_;
  std::uint16_t port_;
};

}  // namespace millrace
