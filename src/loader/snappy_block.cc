#include "loader/snappy_block.h"

#include <cstring>
#include <string>

#include <fmt/format.h>

namespace millrace {

namespace {

Status bad_snappy(std::size_t at, std::string_view why) {
  return {StatusCode::kCorruption, fmt::format("snappy block: {} at byte {}", why, at)};
}

// A block is its length and then elements: bytes that follow, or a copy of what was written before.
class SnappyDecoder {
 public:
  SnappyDecoder(ByteView from, MutableByteView into) : from_(from), into_(into) {}

  Status decode() {
    std::uint64_t length = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (at_ == from_.size() || shift > 28) return bad_snappy(at_, "no length");
      const std::uint64_t byte = next_byte();
      length |= (byte & 0x7F) << shift;
      if (byte < 0x80) break;
    }
    if (length != into_.size()) {
      return bad_snappy(0, fmt::format("{} bytes instead of {}", length, into_.size()));
    }
    while (at_ < from_.size())
      MR_RETURN_IF_ERROR(element());
    if (written_ != into_.size()) return bad_snappy(at_, "it ends early");
    return {};
  }

 private:
  std::uint64_t next_byte() { return std::to_integer<std::uint64_t>(from_[at_++]); }
  // A little-endian number of up to 4 bytes, which there are.
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t n = 0; n < bytes; ++n)
      value |= next_byte() << (8 * n);
    return value;
  }

  Status element() {
    const std::uint64_t tag = next_byte();
    const std::uint64_t high = tag >> 2;
    const std::size_t left = from_.size() - at_;
    switch (tag & 3) {
      case 0: {
        // Lengths from 61 on stand in the bytes that follow.
        const std::size_t more = high < 60 ? 0 : high - 59;
        if (more > left) return bad_snappy(at_, "a cut length");
        return literal((more == 0 ? high : number(more)) + 1);
      }
      case 1:
        if (left < 1) return bad_snappy(at_, "a cut copy");
        return copy((tag >> 5 << 8) | number(1), 4 + (high & 7));
      case 2:
        if (left < 2) return bad_snappy(at_, "a cut copy");
        return copy(number(2), high + 1);
      default:
        if (left < 4) return bad_snappy(at_, "a cut copy");
        return copy(number(4), high + 1);
    }
  }
  Status literal(std::uint64_t length) {
    if (length > from_.size() - at_ || length > into_.size() - written_) {
      return bad_snappy(at_, "bytes without end");
    }
    std::memcpy(into_.data() + written_, from_.data() + at_, length);
    at_ += length;
    written_ += length;
    return {};
  }
  Status copy(std::uint64_t distance, std::uint64_t length) {
    if (distance == 0 || distance > written_ || length > into_.size() - written_) {
      return bad_snappy(at_, "a copy from nowhere");
    }
    // Byte by byte: a copy may go on into what it has just written.
    for (std::uint64_t n = 0; n < length; ++n, ++written_) {
      into_[written_] = into_[written_ - distance];
    }
    return {};
  }

  const ByteView from_;
  const MutableByteView into_;
  std::size_t at_ = 0;
  std::size_t written_ = 0;
};

}  // namespace

Status decompress_snappy(ByteView block, MutableByteView into) {
  return SnappyDecoder(block, into).decode();
}

}  // namespace millrace
