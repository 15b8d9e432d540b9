#include "base/buffer.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace millrace {

Buffer Buffer::allocate(std::size_t size) {
  if (size == 0) return {};
  return {std::make_shared_for_overwrite<std::byte[]>(size), size};
}

void Buffer::truncate(std::size_t size) {
  assert(size <= size_);
  size_ = size;
}

Slice Buffer::freeze() && {
  const ByteView view(memory_.get(), std::exchange(size_, 0));
  return {std::move(memory_), view};
}

Slice Slice::copy_of(ByteView bytes) {
  Buffer buffer = Buffer::allocate(bytes.size());
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  return std::move(buffer).freeze();
}

Slice Slice::from_string(std::string text) {
  auto owner = std::make_shared<const std::string>(std::move(text));
  const ByteView view = as_bytes(*owner);
  return {std::move(owner), view};
}

Slice Slice::borrow(ByteView bytes, std::shared_ptr<const void> owner) {
  return {std::move(owner), bytes};
}

Slice Slice::part(std::size_t offset, std::size_t length) const {
  assert(offset <= size());
  return {owner_, view_.subspan(offset, std::min(length, size() - offset))};
}

}  // namespace millrace
