#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"

namespace millrace {

class Slice;

// Memory being filled: one owner, writable. freeze() turns it into slices that many may read.
// Contents are uninitialised. Move-only, thread-compatible.
class Buffer {
 public:
  Buffer() = default;
  // From the heap. A BufferPool gives buffers that count against a ceiling and are reused.
  static Buffer allocate(std::size_t size);

  // A buffer that was moved from is empty.
  Buffer(Buffer&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::size_t size() const { return size_; }
  std::byte* data() { return memory_.get(); }
  MutableByteView bytes() { return {memory_.get(), size_}; }
  // Gives up the tail: `size` is at most size(). The memory stays until the last slice goes.
  void truncate(std::size_t size);

  // Ends writing. The bytes live as long as the returned slice or any part of it.
  Slice freeze() &&;

 private:
  friend class BufferPool;
  Buffer(std::shared_ptr<std::byte[]> memory, std::size_t size)
      : memory_(std::move(memory)), size_(size) {}

  std::shared_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

// A read-only view of bytes that keeps them alive. Copying shares, never copies the bytes.
// The bytes never change, so slices may be read from any thread.
class Slice {
 public:
  Slice() = default;
  Slice(const Slice&) = default;
  Slice& operator=(const Slice&) = default;
  // A slice that was moved from is empty.
  Slice(Slice&& other) noexcept
      : owner_(std::move(other.owner_)), view_(std::exchange(other.view_, {})) {}
  Slice& operator=(Slice&& other) noexcept {
    owner_ = std::move(other.owner_);
    view_ = std::exchange(other.view_, {});
    return *this;
  }
  // Copies the bytes.
  static Slice copy_of(ByteView bytes);
  static Slice copy_of(std::string_view text) { return copy_of(as_bytes(text)); }
  // Takes the string's bytes without copying them.
  static Slice from_string(std::string text);
  // Bytes that somebody else keeps alive: `owner` is held until the last slice goes.
  static Slice borrow(ByteView bytes, std::shared_ptr<const void> owner);

  const std::byte* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  ByteView bytes() const { return view_; }
  std::string_view text() const { return as_text(view_); }

  // The part [offset, offset + length), cut at the end; offset is at most size().
  Slice part(std::size_t offset, std::size_t length = SIZE_MAX) const;

 private:
  friend class Buffer;
  Slice(std::shared_ptr<const void> owner, ByteView view) : owner_(std::move(owner)), view_(view) {}

  std::shared_ptr<const void> owner_;
  ByteView view_;
};

}  // namespace millrace
