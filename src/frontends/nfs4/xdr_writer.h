#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/bytes.h"
#include "cache/block_cache.h"

namespace millrace {

// A stretch of what is sent: memory, or a part of a file when there is one.
struct XdrPiece {
  Slice memory;
  std::shared_ptr<const CompleteObject> file = nullptr;
  ByteRange range = {};  // Of the file.

  std::uint64_t size() const { return file != nullptr ? range.length : memory.size(); }
};

// A number as XDR has it.
inline void store_xdr(std::byte* at, std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(at, &swapped, sizeof swapped);
}
inline void store_xdr(std::byte* at, std::uint64_t value) {
  const std::uint64_t swapped = __builtin_bswap64(value);
  std::memcpy(at, &swapped, sizeof swapped);
}

// Puts XDR (RFC 4506) together. Large contents are not copied: they are attached, and stand between
// the bytes written before and after them.
//
// Marks are places among the written bytes; they stay valid until something is taken back behind
// them. Move-only, thread-compatible.
class XdrWriter {
 public:
  XdrWriter() = default;
  // One that was moved from is empty.
  XdrWriter(XdrWriter&& other) noexcept
      : memory_(std::move(other.memory_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        attachments_(std::move(other.attachments_)),
        attached_bytes_(std::exchange(other.attached_bytes_, 0)) {}
  XdrWriter& operator=(XdrWriter&& other) noexcept {
    memory_ = std::move(other.memory_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    attachments_ = std::move(other.attachments_);
    attached_bytes_ = std::exchange(other.attached_bytes_, 0);
    return *this;
  }

  void u32(std::uint32_t value) { store_xdr(extend(sizeof value), value); }
  void u64(std::uint64_t value) { store_xdr(extend(sizeof value), value); }
  void i64(std::int64_t value) { u64(static_cast<std::uint64_t>(value)); }
  void boolean(bool value) { u32(value ? 1 : 0); }
  template <class Enum>
    requires std::is_enum_v<Enum>
  void enumeration(Enum value) {
    u32(static_cast<std::uint32_t>(value));
  }
  // Counted, and padded.
  void opaque(ByteView bytes);
  void text(std::string_view text) { opaque(as_bytes(text)); }
  // Not counted, but padded.
  void fixed(ByteView bytes);
  // A counted field that is not copied. The piece is not empty.
  void attach(XdrPiece piece);

  // Room for so many more bytes at once, where it is known that they will come.
  void reserve(std::size_t size) {
    if (size > memory_.size() - size_) grow(size);
  }

  // Everything so far, attachments and padding included.
  std::uint64_t size() const { return size_ + attached_bytes_; }
  bool has_attachments() const { return !attachments_.empty(); }

  struct Mark {
    std::size_t written = 0;
    std::size_t attachments = 0;
  };
  Mark mark() const { return {size_, attachments_.size()}; }
  // Overwrites the number at a mark.
  void patch_u32(Mark at, std::uint32_t value);
  // Takes back what was written since.
  void rewind(Mark to);

  // What was written, without attachments. Until the next write.
  ByteView written() const { return {data_, size_}; }
  // All of it, in the order in which it is sent. The writer is empty afterwards.
  std::vector<XdrPiece> take();

 private:
  struct Attachment {
    std::size_t place;  // Among the written bytes.
    XdrPiece piece;
  };

  // Room for so many more bytes, which the caller fills.
  std::byte* extend(std::size_t size) {
    if (size > memory_.size() - size_) [[unlikely]]
      grow(size);
    return data_ + std::exchange(size_, size_ + size);
  }
  void grow(std::size_t size);
  void pad(std::uint64_t size);

  Buffer memory_;
  std::byte* data_ = nullptr;  // Of the memory.
  std::size_t size_ = 0;       // What of it is written.
  std::vector<Attachment> attachments_;
  std::uint64_t attached_bytes_ = 0;
};

}  // namespace millrace
