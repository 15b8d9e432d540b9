#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/status.h"
#include "platform/disk_lock.h"

namespace millrace {

enum class OpenMode : std::uint8_t {
  kRead,
  kReadWrite,  // The file must exist.
  kCreate,     // Read and write; made empty when absent.
  kCreateNew,  // Read and write; kConflict when it exists.
};

enum class FileKind : std::uint8_t { kFile, kDirectory, kOther };

struct DirectoryEntry {
  std::string name;
  FileKind kind = FileKind::kFile;
};

struct FileFacts {
  FileKind kind = FileKind::kFile;
  std::uint64_t size = 0;
  // What it takes on the disk: less than size for a sparse file.
  std::uint64_t allocated_bytes = 0;
  WallTime modified{};
};

struct DiskSpace {
  std::uint64_t total_bytes = 0;
  // What an unprivileged process may still use.
  std::uint64_t free_bytes = 0;
};

enum class Replace : std::uint8_t { kAllowed, kRefused };

// One open file of a Disk. It stays readable and writable after the file is renamed or removed.
//
// read_at, read_now, both writes and punch may run on several threads at once; overlapping ones
// give the bytes of either in any mix. The file must not outlive its disk.
class DiskFile {
 public:
  virtual ~DiskFile() = default;

  // Fills `into`; less only at the end of the file. Bytes never written read as zero.
  virtual Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) = 0;
  // Fills all of `into` if no device has to be waited for, and says true. False when some of it is
  // not in memory, the file ends before, or the file system cannot tell: then `into` holds rubbish.
  virtual Result<bool> read_now(std::uint64_t offset, MutableByteView into) = 0;
  // Writes all bytes, growing the file as needed. After a failure any part may have been written.
  virtual Status write_at(std::uint64_t offset, ByteView from) = 0;
  // As write_at, but where the system can it goes past the page cache: for much that is not read
  // again soon, which would push out what is. Best from whole pages to whole pages.
  virtual Status write_past_cache(std::uint64_t offset, ByteView from) = 0;
  // Frees the space of the range, which reads as zeros from now on; the size stays. Reaches the
  // device as a write does, with the next sync. kUnsupported where the file system has no holes;
  // after another failure any part may have been freed.
  virtual Status punch(std::uint64_t offset, std::uint64_t length) = 0;
  // Makes content and size survive a power loss; the file's *name* needs Disk::sync_directory.
  // After a failure what was written since the last sync counts as lost: write it anew, do not sync
  // again.
  virtual Status sync() = 0;
  virtual Status truncate(std::uint64_t size) = 0;
  virtual Result<std::uint64_t> size() = 0;

  // For sendfile, mmap, passthrough and io_uring. Nothing when the disk is not the kernel's. Valid
  // while this object lives.
  virtual std::optional<int> descriptor() const = 0;
  virtual const std::string& path() const = 0;
};

// The seam to local disks: real, in memory with power losses, or failing on demand.
//
// Paths have '/' between components. Failures carry the codes of platform/file_error.h and name the
// path. All methods are safe from any thread, and block.
class Disk {
 public:
  virtual ~Disk() = default;

  // kNotFound when the file, or for creation its directory, is absent.
  virtual Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) = 0;
  // Moves a file or directory, atomically for all who look. An existing file at `to` is replaced,
  // or with kRefused left alone: kConflict. Durable after sync_directory of both parents.
  virtual Status rename(const std::string& from, const std::string& to, Replace replace) = 0;
  // A file, or an empty directory (kConflict when it is not). Open files live on until closed.
  virtual Status remove(const std::string& path) = 0;
  // All names but "." and "..", in ascending order.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
  // With all missing parents; success when it is there already. Durable on success.
  virtual Status make_directories(const std::string& path) = 0;
  // One, in a parent that is there; success when it is there already. Durable after sync_directory
  // of the parent: whoever makes many need not wait for the device at each.
  virtual Status make_directory(const std::string& path) = 0;
  // Makes creations, renames and removals of names in this directory survive a power loss.
  virtual Status sync_directory(const std::string& path) = 0;
  // Does not follow a symbolic link in the last component.
  virtual Result<FileFacts> stat(const std::string& path) = 0;
  // Of the file system that holds `path`, which must exist.
  virtual Result<DiskSpace> space(const std::string& path) = 0;
  // Takes the file at `path`, made when absent, for this process, and writes into it who that is:
  // `owner`, one line (platform/process.h). kConflict when it is taken, by this process or another,
  // with a message that names the owner; kUnsupported where the file system has no locks. The lock
  // goes with the process, however that ends; the file stays. It is held even when the line could
  // not be written, since a full disk must not keep out the one who will make space.
  virtual Result<std::unique_ptr<DiskLock>> lock(const std::string& path,
                                                 std::string_view owner) = 0;
};

}  // namespace millrace
