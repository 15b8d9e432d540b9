#pragma once

#include <linux/fuse.h>
#include <sys/ioctl.h>

#include <array>
#include <cstdint>

namespace millrace {

// What Linux has learned since the headers of Debian 12 (FUSE 7.38).
namespace fuse_kernel {

// Bits of INIT, on both sides. The upper half travels in `flags2`.
inline constexpr std::uint64_t kPassthrough = std::uint64_t{1} << 37;
inline constexpr std::uint64_t kHasResend = std::uint64_t{1} << 39;

// The answer to INIT.
struct InitOut {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t max_readahead = 0;
  std::uint32_t flags = 0;
  std::uint16_t max_background = 0;
  std::uint16_t congestion_threshold = 0;
  std::uint32_t max_write = 0;
  std::uint32_t time_gran = 0;
  std::uint16_t max_pages = 0;
  std::uint16_t map_alignment = 0;
  std::uint32_t flags2 = 0;
  std::uint32_t max_stack_depth = 0;
  std::array<std::uint32_t, 6> unused{};
};
static_assert(sizeof(InitOut) == 64);

// The answer to OPEN.
struct OpenOut {
  std::uint64_t fh = 0;
  std::uint32_t open_flags = 0;
  std::int32_t backing_id = 0;
};
static_assert(sizeof(OpenOut) == sizeof(fuse_open_out));
inline constexpr std::uint32_t kOpenPassthrough = 1U << 7;

// Has the kernel send again what the last reader of the device did not answer. Each such request
// carries the bit, and so must its answer.
inline constexpr std::int32_t kNotifyResend = 7;
inline constexpr std::uint64_t kResent = std::uint64_t{1} << 63;

struct BackingMap {
  std::int32_t fd = -1;
  std::uint32_t flags = 0;
  std::uint64_t padding = 0;
};
inline constexpr unsigned long kBackingOpen = _IOW(229, 1, BackingMap);
inline constexpr unsigned long kBackingClose = _IOW(229, 2, std::uint32_t);

// Of files, as linux/fs.h has them, which cannot be included beside sys/mount.h (glibc 2.36). The
// numbers are made with long, and int is what is passed.
inline constexpr unsigned long kGetFlags = _IOR('f', 1, long);
inline constexpr unsigned long kSetFlags = _IOW('f', 2, long);
inline constexpr int kNoAccessTimes = 0x80;

}  // namespace fuse_kernel
}  // namespace millrace
