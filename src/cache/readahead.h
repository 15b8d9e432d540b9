#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace millrace {

struct ReadaheadOptions {
  // How far ahead of a sequential reader to fetch: enough for the product of bandwidth and latency
  // of a distant store. 0 turns it off.
  std::uint64_t window_bytes_max = 128 * kMiB;
  // Stores give each connection only so much, so a window comes in many pieces. More than are on
  // their way at a time (FetchQueueOptions): what is done makes room for one that waits, and not
  // for what a reader who waits himself would ask for next.
  std::uint64_t pieces_per_window = 128;
};

// What to fetch on suspicion, and in pieces of what size.
struct FetchAhead {
  ByteRange bytes;
  std::uint64_t piece_bytes = 0;

  bool empty() const { return bytes.empty(); }
};

// Finds sequential readers of one object among its reads, and says what to fetch ahead of each.
//
// Invariants:
//  1. A first read never causes more than itself to be fetched; only a read that goes on where an
//     earlier one ended does. So random reads fetch what they ask for.
//  2. What was announced for a stream is at most kWindowPerByte times what it has read: somebody
//     who reads a little in sequence cannot cause a flood, and a real stream reaches the full
//     window within a few round trips.
//  3. Nothing is announced twice to the same stream, unless it was retracted.
//
// Streams are told apart by position, not by reader: a kernel sends the reads of one process from
// several threads and out of order, so a stream takes reads near its position, the nearer the
// younger it is. Thread-compatible.
class Readahead {
 public:
  explicit Readahead(ReadaheadOptions options) : options_(options) {}

  // Notes a read, and returns what should be fetched on suspicion; empty mostly.
  FetchAhead note_read(ByteRange read, std::uint64_t object_size);
  // Bytes that were announced are not fetched after all: they will be announced again.
  void retract(ByteRange bytes);

 private:
  static constexpr std::uint64_t kWindowPerByte = 8;
  // A window grows by a few pieces at a time, so that most of its connections are always busy.
  static constexpr std::uint64_t kStepsPerWindow = 16;
  static constexpr std::uint64_t kPieceBytesMin = kMiB;
  static constexpr std::size_t kStreams = 8;

  struct Stream {
    std::uint64_t next = 0;        // Where its furthest read ended.
    std::uint64_t read_bytes = 0;  // In sequence so far; 0: the slot is free.
    std::uint64_t announced = 0;   // Up to where it was fetched ahead.
    std::uint64_t last_used = 0;
  };

  Stream* find(ByteRange read);
  Stream& oldest();
  FetchAhead announce(Stream& stream, std::uint64_t object_size) const;

  const ReadaheadOptions options_;
  std::array<Stream, kStreams> streams_;
  std::uint64_t reads_ = 0;
};

}  // namespace millrace
