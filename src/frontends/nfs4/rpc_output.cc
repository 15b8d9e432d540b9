#include "frontends/nfs4/rpc_output.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "frontends/nfs4/rpc_record.h"

namespace millrace {
namespace {

constexpr std::size_t kPiecesPerSend = 64;
// How much goes out before the loop looks after others.
constexpr std::uint64_t kBytesPerTurn = 8 * kMiB;

}  // namespace

XdrWriter begin_rpc_record() {
  XdrWriter writer;
  writer.u32(0);
  return writer;
}

std::vector<XdrPiece> end_rpc_record(XdrWriter& writer) {
  const std::uint64_t size = writer.size() - kRpcMarkBytes;
  writer.patch_u32({}, kRpcLastFragment | static_cast<std::uint32_t>(size));
  return writer.take();
}

void RpcOutput::push(std::vector<XdrPiece> pieces) {
  for (XdrPiece& piece : pieces) {
    if (piece.size() == 0) continue;
    memory_bytes_ += piece.memory.size();
    pieces_.push_back(std::move(piece));
  }
}

std::int64_t RpcOutput::send_memory(int socket) {
  std::array<iovec, kPiecesPerSend> parts;
  std::size_t count = 0;
  while (count < std::min(parts.size(), pieces_.size()) && pieces_[count].file == nullptr) {
    const Slice& memory = pieces_[count].memory;
    // sendmsg(2) does not write through its pointers.
    parts[count++] = {const_cast<std::byte*>(memory.data()), memory.size()};
  }
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = count;
  // A head goes out in one packet with the beginning of its file.
  const int more = count < pieces_.size() ? MSG_MORE : 0;
  return ::sendmsg(socket, &message, MSG_NOSIGNAL | more);
}

std::int64_t RpcOutput::send_file(int socket) {
  const XdrPiece& piece = pieces_.front();
  auto offset = static_cast<off_t>(piece.range.offset);
  const ssize_t sent = ::sendfile(socket, piece.file->descriptor(), &offset, piece.range.length);
  if (sent == 0) {
    // The file is shorter than its answer says.
    errno = EIO;
    return -1;
  }
  return sent;
}

void RpcOutput::drop_front(std::uint64_t bytes) {
  while (bytes > 0) {
    XdrPiece& piece = pieces_.front();
    const std::uint64_t part = std::min(bytes, piece.size());
    bytes -= part;
    if (piece.file == nullptr) memory_bytes_ -= part;
    if (part == piece.size()) {
      pieces_.pop_front();
    } else if (piece.file != nullptr) {
      piece.range = {piece.range.offset + part, piece.range.length - part};
    } else {
      piece.memory = piece.memory.part(part);
    }
  }
}

RpcOutput::Outcome RpcOutput::send(int socket) {
  std::uint64_t budget = kBytesPerTurn;
  while (!pieces_.empty()) {
    if (budget == 0) return Outcome::kBlocked;
    const std::int64_t sent =
        pieces_.front().file != nullptr ? send_file(socket) : send_memory(socket);
    if (sent < 0) {
      if (errno == EINTR) continue;
      return errno == EAGAIN ? Outcome::kBlocked : Outcome::kBroken;
    }
    progressed_ = true;
    const auto bytes = static_cast<std::uint64_t>(sent);
    drop_front(bytes);
    budget -= std::min(budget, bytes);
  }
  return Outcome::kDone;
}

}  // namespace millrace
