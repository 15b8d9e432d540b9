#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/executor.h"
#include "base/request_context.h"
#include "base/status.h"
#include "dataset/pack_planner.h"
#include "dataset/source_tree.h"
#include "platform/digest.h"

namespace millrace {

// Makes the bytes of a planned pack, front to back, from the files of a source, and hashes each
// file on the way.
//
// Invariants:
//  1. A file is opened once, read once, and found unchanged before its first byte and after its
//     last. Whatever else happens is a failure that names it.
//  2. At most one file stays open between two calls of fill().
//
// Thread-compatible.
class PackStream {
 public:
  // Everything outlives the stream. Files of one fill() are read by up to `reads_max` tasks of
  // `readers` at once, the calling thread among them, since each costs a round trip on a network;
  // null: one after the other.
  PackStream(SourceTree& source, const PlannedPack& pack, Executor* readers, std::size_t reads_max);

  // Fills `into`, which does not pass the end of the pack, with its next bytes. kConflict with the
  // path when a file is not what the scan met; failures of the source. After a failure the stream
  // is of no use.
  Status fill(const RequestContext& context, MutableByteView into);

  std::uint64_t offset() const { return offset_; }
  // One for each member that has been read to its end, in their order.
  const std::vector<Sha256Digest>& hashes() const { return hashes_; }

 private:
  // The part of one file that falls into a fill().
  struct Part {
    const SourceEntry* file = nullptr;
    std::uint64_t offset = 0;
    MutableByteView into = {};
    std::unique_ptr<SourceFile> open_file = {};
    Status status = {};
    Sha256Digest hash = {};  // Once it is read, of a whole file.

    bool ends_file() const { return offset + into.size() == file->size; }
    bool is_whole_file() const { return offset == 0 && ends_file(); }
  };
  struct Reading;

  // Writes headers and zeros, and returns what is to be read.
  Result<std::vector<Part>> lay_out(MutableByteView into);
  Status lay_out_member(std::size_t member, MutableByteView into, std::vector<Part>& parts);
  void read_parts(const RequestContext& context, std::vector<Part>& parts);
  static void work_on(Reading& reading);
  static Status read_part(const RequestContext& context, SourceTree& source, Part& part);

  SourceTree& source_;
  const PlannedPack& pack_;
  Executor* const readers_;
  const std::size_t reads_max_;

  std::uint64_t offset_ = 0;
  // The first member that does not end before offset_.
  std::size_t member_ = 0;
  std::unique_ptr<SourceFile> carried_;
  Sha256 hash_;  // Of the file that a fill() ended in.
  std::vector<Sha256Digest> hashes_;
};

}  // namespace millrace
