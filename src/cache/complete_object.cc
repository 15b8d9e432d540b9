#include "cache/complete_object.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <optional>

#include "platform/file_error.h"

namespace millrace {

Result<std::unique_ptr<CompleteObject>> FileCompleteObject::make(std::unique_ptr<DiskFile> file,
                                                                 std::uint64_t size,
                                                                 HeldObject held) {
  const std::optional<int> descriptor = file->descriptor();
  if (!descriptor) {
    return failure(StatusCode::kUnsupported, "the cache disk has no descriptors to hand out");
  }
  return std::make_unique<FileCompleteObject>(std::move(file), *descriptor, size, std::move(held));
}

Result<std::unique_ptr<CompleteObject>> MemoryCompleteObject::make(const Slice& data) {
  File file =
      File::adopt(::memfd_create("millrace", MFD_CLOEXEC | MFD_ALLOW_SEALING), "a copy in memory");
  if (!file.is_open()) return failure(file_error(errno, "create", file.path()));
  MR_RETURN_IF_ERROR(file.write_at(0, data.bytes()));
  if (::fcntl(file.descriptor(), F_ADD_SEALS,
              F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) != 0) {
    return failure(file_error(errno, "seal", file.path()));
  }
  return std::make_unique<MemoryCompleteObject>(std::move(file), data.size());
}

}  // namespace millrace
