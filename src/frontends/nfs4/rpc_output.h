#pragma once

#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "frontends/nfs4/xdr_writer.h"

namespace millrace {

// A record that is to be sent begins with its mark, which is known at its end.
XdrWriter begin_rpc_record();
std::vector<XdrPiece> end_rpc_record(XdrWriter& writer);

// What waits to be sent on a connection. Nothing is copied: memory goes by sendmsg, many records at
// a time, and files go by sendfile.
//
// Touched by the loop's thread only.
class RpcOutput {
 public:
  void push(std::vector<XdrPiece> pieces);

  enum class Outcome : std::uint8_t {
    kDone,     // Nothing is left.
    kBlocked,  // Until the socket is writable.
    kBroken,   // The client is gone, or a file is not what it was.
  };
  Outcome send(int socket);

  bool empty() const { return pieces_.empty(); }
  // Memory that waits; files take none.
  std::uint64_t memory_bytes() const { return memory_bytes_; }
  // Some of it was taken since this was last asked.
  bool progressed() { return std::exchange(progressed_, false); }

 private:
  // How much was taken; below 0 as the system calls have it.
  std::int64_t send_memory(int socket);
  std::int64_t send_file(int socket);
  void drop_front(std::uint64_t bytes);

  std::deque<XdrPiece> pieces_;
  std::uint64_t memory_bytes_ = 0;
  bool progressed_ = false;
};

}  // namespace millrace
