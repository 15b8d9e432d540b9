#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace millrace {

inline constexpr std::uint64_t kTarBlockBytes = 512;
// What ends an archive: two blocks of zeros.
inline constexpr std::uint64_t kTarEndBytes = 2 * kTarBlockBytes;
// The longest name and link target that we write or read.
inline constexpr std::size_t kTarPathBytesMax = 4096;

enum class TarKind : std::uint8_t {
  kFile,
  kDirectory,
  kSymlink,
  // Read only: another name of a member before it.
  kHardLink,
  // Read only: a device, a FIFO, a kind that only its maker knows.
  kOther,
};

struct TarMember {
  // Relative, '/' between components, any bytes but NUL. The '/' that archives put behind the name
  // of a directory is not part of it.
  std::string path = {};
  TarKind kind = TarKind::kFile;
  std::uint16_t mode = 0644;
  // Nanoseconds since 1970.
  std::int64_t mtime_ns = 0;
  // Bytes of content, 0 for all but files.
  std::uint64_t size = 0;
  std::string link_target = {};

  bool operator==(const TarMember&) const = default;
};

// A part of a second takes a pax header of 1 KiB for each member.
enum class TarTimes : std::uint8_t { kSeconds, kNanoseconds };

inline std::uint64_t tar_padded(std::uint64_t bytes) {
  return (bytes + kTarBlockBytes - 1) / kTarBlockBytes * kTarBlockBytes;
}

// The header blocks of a member: one of POSIX ustar, behind a pax extended header where the name
// does not fit even in two parts, where the size is 8 GiB or more, and where the time cannot be
// said otherwise. Its owner is root. The same member gives the same bytes, everywhere. The content
// follows, filled up to a block with zeros.
// kInvalidArgument for a member that no archive can hold: an empty, absolute or too long name, one
// with a NUL, a kind that is only read, a size above 2^62.
Result<std::string> encode_tar_header(const TarMember& member, TarTimes times);

// How long that header is.
Result<std::uint64_t> tar_header_bytes(const TarMember& member, TarTimes times);

}  // namespace millrace
