#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "vfs/version_objects.h"
#include "vfs/version_tree.h"

namespace millrace {

// A read of a file that lies in several places: all are read side by side into one buffer, and the
// first failure is the answer.
class GatheredRead : public std::enable_shared_from_this<GatheredRead> {
 public:
  // `parts` cover `range` of the file.
  static void start(const VersionReads& reads, const RequestContext& context,
                    const std::vector<FilePart>& parts, ByteRange range, Completion<Slice> done);

  GatheredRead(Buffer buffer, ByteRange range, std::size_t parts, Completion<Slice> done)
      : range_(range),
        into_(buffer.bytes()),
        awaited_(parts),
        done_(std::move(done)),
        buffer_(std::move(buffer)) {}

 private:
  void delivered(std::uint64_t file_offset, std::uint64_t wanted_bytes, Result<Slice> data);

  const ByteRange range_;
  // Of the buffer. Parts write to their own stretches of it, each once.
  const MutableByteView into_;

  Mutex mutex_;
  std::size_t awaited_ MR_GUARDED_BY(mutex_);
  Status failure_ MR_GUARDED_BY(mutex_);
  Completion<Slice> done_ MR_GUARDED_BY(mutex_);
  Buffer buffer_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
