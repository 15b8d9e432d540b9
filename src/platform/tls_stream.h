#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

struct ssl_st;
struct ssl_ctx_st;

namespace millrace {

// Who a server is in TLS. All are PEM files.
struct TlsServerFiles {
  std::string certificate;  // First its own, then what leads to its authority.
  std::string key;
  std::string client_authority = {};  // Empty: clients are not asked who they are.
};

// The server's side of one TLS 1.3 connection, without a socket: what arrives is given to it, and
// what it wants to send is taken from it. So the owner of the socket waits as it likes.
//
// A failure of any method is for good; what is in output() then tells the other side. Thread-
// compatible.
class TlsStream {
 public:
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Bytes from the other side, all of them. kInvalidArgument when they are no TLS,
  // kPermissionDenied when the other side is not accepted.
  Status receive(ByteView bytes);
  // What the other side said, as much as fits; nothing when more must arrive first. kUnavailable
  // when it has said goodbye.
  Result<std::size_t> read(MutableByteView into);
  // Adds to the output. Not before is_ready().
  Status write(ByteView bytes);
  // Says goodbye.
  void end();
  // What is to be sent; empty when there is nothing. Taken once.
  Slice output();

  // Both sides have agreed.
  bool is_ready() const;
  // The other side has shown a certificate of the authority.
  bool knows_peer() const;

 private:
  friend class TlsServer;
  explicit TlsStream(ssl_st* ssl) : ssl_(ssl) {}

  ssl_st* const ssl_;
};

// Makes the streams of a server, and outlives them. Immutable, so safe from any thread.
class TlsServer {
 public:
  // `protocol` is the only application protocol that clients may ask for; those that ask for none
  // are let in. kInvalidArgument names the file that cannot be used. Blocks.
  static Result<std::unique_ptr<const TlsServer>> open(const TlsServerFiles& files,
                                                       std::string_view protocol);
  ~TlsServer();
  TlsServer(const TlsServer&) = delete;
  TlsServer& operator=(const TlsServer&) = delete;

  // kInternal when there is no memory.
  Result<std::unique_ptr<TlsStream>> accept() const;

 private:
  TlsServer(ssl_ctx_st* context, std::string_view protocol, bool asks_peers)
      : context_(context), protocol_(protocol), asks_peers_(asks_peers) {}
  Status use(const TlsServerFiles& files);

  ssl_ctx_st* const context_;
  const std::string protocol_;
  const bool asks_peers_;
};

}  // namespace millrace
