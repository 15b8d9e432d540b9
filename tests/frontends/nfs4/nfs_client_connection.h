#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "platform/file.h"
#include "tests/frontends/nfs4/nfs_client_call.h"

struct ssl_st;

namespace millrace::testing {

// A TCP connection that carries RPC, in both directions: calls of the server (the backchannel) are
// answered while somebody waits for a reply.
//
// Throws std::runtime_error when the other side ends it, or says nothing for the time-out.
// Thread-compatible.
class NfsConnection {
 public:
  explicit NfsConnection(std::uint16_t port, const std::string& address = "127.0.0.1",
                         std::chrono::milliseconds timeout = std::chrono::seconds(30));

  // Sends with the next flush() or receive(). Returns the transaction's id.
  std::uint32_t send(const NfsCall& call);
  // Bytes as they are, at once: for those who do not keep to the protocol. False when the other
  // side has ended the connection.
  bool send_raw(ByteView bytes);
  void flush();
  // The next reply, whichever it answers; valid until the next call of this.
  NfsAnswer receive();
  // send() and the answer, which is kept.
  NfsAnswer run(const NfsCall& call);
  // A call of the procedure that does nothing, with credentials of this flavour.
  NfsAnswer null(std::uint32_t flavour = 0);

  // Asks for TLS and begins it, with these PEM files; empty certificate: none is shown. False when
  // the server does not offer it. Throws when the handshake fails.
  struct TlsFiles {
    std::string authority;
    std::string certificate = {};
    std::string key = {};
    std::string protocol = "sunrpc";
  };
  bool start_tls(const TlsFiles& files);

  // So many bytes as they come; empty when they do not. Until the next call of this or receive().
  ByteView receive_raw(std::size_t bytes);

  // True when the other side ends the connection within the time-out; what comes before is dropped.
  bool is_ended();
  // Ends our half.
  void finish_sending();
  int descriptor() const { return socket_.descriptor(); }
  // The connection itself, which then rests.
  File release() && { return std::move(socket_); }

  // Operations of the server's calls, in the order of their arrival.
  struct Callback {
    std::uint32_t operation = 0;
    NfsStateid stateid = {};  // Of a recall.
    std::string handle = {};  // The same.
  };
  const std::vector<Callback>& callbacks() const { return callbacks_; }
  // Receives until `count` callbacks have come. False when they do not.
  bool wait_for_callbacks(std::size_t count);

 private:
  // One record without its mark, in input_ or, when it came in fragments, in joined_. Empty at the
  // end of the connection or of the time.
  ByteView next_record();
  bool fill(std::size_t bytes);
  // As recv(2) does.
  ssize_t receive_some(std::span<std::byte> into);
  void answer_callback(ByteView call);

  File socket_;
  std::shared_ptr<ssl_st> tls_;  // Null: in the open.
  const std::chrono::milliseconds timeout_;
  std::uint32_t xid_ = 0x1000;
  std::vector<std::byte> output_;
  std::vector<std::byte> input_;
  std::size_t begin_ = 0;  // Of what is in input_ and was not looked at.
  std::size_t end_ = 0;
  std::vector<std::byte> joined_;
  std::vector<Callback> callbacks_;
};

}  // namespace millrace::testing
