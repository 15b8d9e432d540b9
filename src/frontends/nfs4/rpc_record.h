#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/buffer.h"
#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// The four bytes in front of each fragment: whether it is the last of its record, and its length.
inline constexpr std::uint32_t kRpcLastFragment = 0x80000000;
inline constexpr std::size_t kRpcMarkBytes = 4;

struct RpcRecordLimits {
  std::size_t record_bytes_max = 0;
  // Whoever cuts a record into more pieces only means to cost time.
  std::size_t fragments_max = 64;
};

// Puts records together from what arrives on a connection (RFC 5531, record marking).
//
// Invariants:
//  1. It keeps no more than arrived, and at most one record: a length that a stranger claims
//     allocates nothing.
//  2. After a failure the connection is of no use: where the next record begins is not known.
//
// Thread-compatible.
class RpcRecords {
 public:
  explicit RpcRecords(RpcRecordLimits limits) : limits_(limits) {}

  // Takes from the front of `bytes` up to the end of a record, and returns that when it is whole;
  // nothing when all bytes are taken and more are needed. kResourceExhausted beyond the limits.
  Result<std::optional<Slice>> next(ByteView& bytes);

  // A part of a record has arrived.
  bool started() const { return mark_size_ > 0 || fragments_ > 0; }

 private:
  Status begin_fragment();

  const RpcRecordLimits limits_;
  std::string record_;
  std::uint8_t mark_[kRpcMarkBytes] = {};
  std::size_t mark_size_ = 0;      // Of the mark that is arriving; whole while a fragment is.
  std::size_t fragment_left_ = 0;  // Of the fragment that is arriving.
  std::size_t fragments_ = 0;      // Begun, of this record.
  bool last_ = false;
};

}  // namespace millrace
