#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "platform/file.h"

namespace millrace {

// Bytes that may not fit into memory: appended at one end, read back anywhere. What exceeds the
// buffer goes to a file without a name in `directory`, so that nothing is left behind however the
// process ends. Needs one thread at a time.
class ManifestSpool {
 public:
  explicit ManifestSpool(std::string directory, std::size_t buffer_bytes = 256 * kKiB);

  // kResourceExhausted or kIoError when the file cannot grow; the spool is useless then.
  Status append(ByteView bytes);
  // All of `into` must be within size().
  Status read_at(std::uint64_t offset, MutableByteView into) const;

  std::uint64_t size() const { return written_ + buffer_.size(); }

 private:
  Status flush();

  std::string directory_;
  std::size_t buffer_bytes_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  File file_;
};

// Reads a part of a spool from its beginning to its end. The part may still grow when `end` is not
// given. Must not outlive the spool.
class ManifestSpoolReader {
 public:
  ManifestSpoolReader(const ManifestSpool& spool, std::size_t buffer_bytes, std::uint64_t begin = 0,
                      std::uint64_t end = UINT64_MAX);

  bool at_end() const;
  // The next `count` bytes, valid until the next call. kInternal when there are fewer.
  Result<ByteView> read(std::size_t count);
  // The same without moving on.
  Result<ByteView> peek(std::size_t count);

 private:
  const ManifestSpool* spool_;
  std::size_t buffer_bytes_;
  std::uint64_t position_;  // Of what follows the buffer.
  std::uint64_t end_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
};

}  // namespace millrace
