#include "vfs/gathered_read.h"

#include <algorithm>
#include <utility>

namespace millrace {

void GatheredRead::start(const VersionReads& reads, const RequestContext& context,
                         const std::vector<FilePart>& parts, ByteRange range,
                         Completion<Slice> done) {
  Result<Buffer> buffer = reads.buffers.try_allocate(range.length);
  if (!buffer) {
    done.complete(failure(std::move(buffer).error()));
    return;
  }
  const auto read =
      std::make_shared<GatheredRead>(*std::move(buffer), range, parts.size(), std::move(done));
  for (const FilePart& part : parts) {
    reads.cache.read(
        context, part.object, part.bytes,
        Completion<Slice>(inline_executor(), [read, at = part.file_offset,
                                              wanted = part.bytes.length](Result<Slice> data) {
          read->delivered(at, wanted, std::move(data));
        }));
  }
}

void GatheredRead::delivered(std::uint64_t file_offset, std::uint64_t wanted_bytes,
                             Result<Slice> data) {
  Status failed;
  if (!data) {
    failed = std::move(data).error();
  } else if (data->size() != wanted_bytes) {
    failed = Status(StatusCode::kInternal, "the cache delivered less than its object has");
  } else {
    std::ranges::copy(data->bytes(), into_.subspan(file_offset - range_.offset).begin());
  }
  MutexLock lock(mutex_);
  if (!failed.ok()) failure_ = std::move(failed);
  if (--awaited_ > 0) return;
  Completion<Slice> done = std::move(done_);
  Result<Slice> answer = failure_.ok() ? Result<Slice>(std::move(buffer_).freeze())
                                       : Result<Slice>(failure(std::move(failure_)));
  lock.unlock();
  done.complete(std::move(answer));
}

}  // namespace millrace
