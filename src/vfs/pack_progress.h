#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace millrace {

// How far readers have come in one pack, and whether they will go on into the next: who reads small
// files in order would wait for a few round trips at the beginning of each pack otherwise.
//
// Invariants:
//  1. Only bytes read in order, from the beginning of the pack on, count. Somebody who reads a few
//     files, or all of them in no order, causes nothing.
//  2. The next pack is expected once in a pass, when an eighth of this one was read.
//  3. What is expected is at most kExpectedPerByte times what was read.
//
// Several readers share the files of a pack among them, so what is near the position is in order.
// Thread-compatible.
class PackProgress {
 public:
  // Notes a read. Returns how much of the next pack to expect; 0 mostly.
  std::uint64_t note_read(ByteRange read, std::uint64_t pack_bytes);

 private:
  static constexpr std::uint64_t kExpectedPerByte = 8;

  bool is_near(ByteRange read, std::uint64_t pack_bytes) const;

  std::uint64_t next_ = 0;  // Where the furthest read in order ended.
  std::uint64_t in_order_bytes_ = 0;
  std::uint64_t stray_bytes_ = 0;
  bool has_expected_ = false;
};

}  // namespace millrace
