#include "cache/read_around.h"

#include <algorithm>
#include <bit>

namespace millrace {

ByteRange ReadAround::note_miss(ByteRange read, std::uint64_t object_size) {
  if (!is_on_) return {};
  const std::uint64_t allowed_bytes = missed_bytes_ * kAroundPerByte;
  missed_bytes_ += read.length;
  // By what is allowed in all, not by what is left of it: few large requests rather than many small
  // ones. A power of two, so that what two misses announce is the same or apart.
  const std::uint64_t length = std::min(std::bit_floor(allowed_bytes), kAroundBytesMax);
  if (length < kAroundBytesMin || announced_bytes_ + length > allowed_bytes) return {};
  announced_bytes_ += length;
  const std::uint64_t begin = read.offset / length * length;
  return {begin, std::min(begin + length, object_size) - begin};
}

}  // namespace millrace
