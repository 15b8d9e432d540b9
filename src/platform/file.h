#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

// Linux moves at most this much per call; larger requests are cut, so that counts stay in range.
inline constexpr std::size_t kTransferBytesMax = 0x7ffff000;

// An open descriptor of the operating system, and the path for its messages.
//
// Lifecycle: opened or adopted, closed by the destructor. Move-only. Failures carry the codes of
// platform/file_error.h and name the path. read_at, read_now, write_at and punch may be called from
// several threads at once; everything else needs one thread at a time.
class File {
 public:
  File() = default;
  // Takes `flags` of open(2); O_CLOEXEC is always added. A relative path starts at `directory`.
  static Result<File> open(std::string path, int flags, mode_t mode = 0666,
                           int directory = AT_FDCWD);
  // Takes over an open descriptor.
  static File adopt(int descriptor, std::string path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  bool is_open() const { return descriptor_ >= 0; }
  int descriptor() const { return descriptor_; }
  const std::string& path() const { return path_; }

  // Fills `into` from `offset`. Returns how much there was: less than asked for only at the end of
  // the file.
  Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) const;
  // Fills all of `into` from what is in memory, and says true. False, with rubbish in `into`, when
  // that cannot be done without waiting for the device, when the file ends before, or when the file
  // system cannot tell. Neither allocates nor locks.
  Result<bool> read_now(std::uint64_t offset, MutableByteView into) const;
  // Writes all bytes. After a failure any part of them may be in the file.
  Status write_at(std::uint64_t offset, ByteView from) const;

  Result<struct stat> stat() const;
  Result<std::uint64_t> size() const;
  Status truncate(std::uint64_t size) const;
  // Makes the range a hole: it reads as zeros, its whole blocks take no space, the size stays.
  // kUnsupported where the file system has no holes.
  Status punch(std::uint64_t offset, std::uint64_t length) const;

  // fsync. After a failure the kernel may have dropped the unwritten pages and a second sync would
  // lie: the caller writes the bytes anew, elsewhere, or gives up.
  Status sync() const;
  // fdatasync: content and size, without times and ownership.
  Status data_sync() const;

  void close();

 private:
  File(int descriptor, std::string path) : descriptor_(descriptor), path_(std::move(path)) {}

  int descriptor_ = -1;
  std::string path_;
};

// Whether the kernel has the range of a file in memory, as far as a few looks at it tell. False
// also when it cannot tell. Never waits for the device.
bool is_in_memory(int descriptor, ByteRange range);

// Makes the names in a directory durable.
Status sync_directory(const std::string& path);

// Replaces the file at `path`, or creates it, with exactly these bytes: other processes, and
// whoever looks after a power loss, see the old content or the new one. Durable on success; on
// failure the old file is untouched and no temporary file is left.
Status write_file_atomically(const std::string& path, ByteView bytes, mode_t mode = 0666);

// All bytes of a file of at most `bytes_max`; kResourceExhausted when it is larger.
Result<std::string> read_file(const std::string& path, std::uint64_t bytes_max = 16 * kMiB);

}  // namespace millrace
