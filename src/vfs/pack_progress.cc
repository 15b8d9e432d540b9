#include "vfs/pack_progress.h"

#include <algorithm>

namespace millrace {
namespace {

// Of a pack: when this much was read, and how far behind the position somebody may be.
constexpr std::uint64_t kShareRead = 8;
// Of a pack that is hardly larger than its files nothing can be told.
constexpr std::uint64_t kReadBytesMin = 2 * kMiB;
// How far ahead of the others a reader may be: eight of them, with files of 128 KiB.
constexpr std::uint64_t kAheadBytesMax = kMiB;
// Who reads in no order is near the position by chance now and then.
constexpr std::uint64_t kInOrderPerStray = 2;

}  // namespace

std::uint64_t PackProgress::note_read(ByteRange read, std::uint64_t pack_bytes) {
  // Somebody begins anew: the next pack may be gone from the cache by now.
  if (read.offset < kAheadBytesMax && next_ > pack_bytes / 2) *this = {};
  if (!is_near(read, pack_bytes)) {
    stray_bytes_ += read.length;
    return 0;
  }
  in_order_bytes_ += read.length;
  next_ = std::max(next_, read.end());
  if (has_expected_ || in_order_bytes_ < std::max(pack_bytes / kShareRead, kReadBytesMin) ||
      in_order_bytes_ < stray_bytes_ * kInOrderPerStray) {
    return 0;
  }
  has_expected_ = true;
  return in_order_bytes_ * kExpectedPerByte;
}

bool PackProgress::is_near(ByteRange read, std::uint64_t pack_bytes) const {
  return read.offset <= next_ + kAheadBytesMax && read.end() + pack_bytes / kShareRead >= next_;
}

}  // namespace millrace
