#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "cache/readahead.h"

namespace millrace {

// What to fetch around reads that find nothing in a pack: who reads small files in no order comes
// back for the rest, and stores charge by the request more than by the byte.
//
// Invariants:
//  1. The first miss of a pack causes nothing more to be fetched.
//  2. What was announced is at most kAroundPerByte times what earlier misses asked for: somebody
//     who wants a few files of a pack does not get all of it.
//
// Thread-compatible.
class ReadAround {
 public:
  // Off where reading ahead is.
  explicit ReadAround(ReadaheadOptions options) : is_on_(options.window_bytes_max > 0) {}

  // Notes a read that had to wait for the store, and returns what else to fetch: bytes around it,
  // itself among them, or none.
  ByteRange note_miss(ByteRange read, std::uint64_t object_size);

 private:
  static constexpr std::uint64_t kAroundPerByte = 32;
  static constexpr std::uint64_t kAroundBytesMin = 512 * kKiB;
  static constexpr std::uint64_t kAroundBytesMax = 4 * kMiB;

  const bool is_on_;
  std::uint64_t missed_bytes_ = 0;
  std::uint64_t announced_bytes_ = 0;
};

}  // namespace millrace
