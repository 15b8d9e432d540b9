#include "platform/memory_disk_content.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace millrace {

MemoryContent::Extents::const_iterator MemoryContent::first_after(std::uint64_t offset) const {
  const auto next = extents_.upper_bound(offset);
  if (next == extents_.begin()) return next;
  const auto previous = std::prev(next);
  return previous->second > offset ? previous : next;
}

std::uint64_t MemoryContent::unallocated_bytes(std::uint64_t offset, std::uint64_t length) const {
  const std::uint64_t end = offset + length;
  std::uint64_t missing = length;
  for (auto extent = first_after(offset); extent != extents_.end() && extent->first < end;
       ++extent) {
    missing -= std::min(extent->second, end) - std::max(extent->first, offset);
  }
  return missing;
}

std::size_t MemoryContent::read(std::uint64_t offset, MutableByteView into) const {
  if (offset >= bytes_.size()) return 0;
  const std::size_t count = std::min<std::uint64_t>(into.size(), bytes_.size() - offset);
  std::memcpy(into.data(), bytes_.data() + offset, count);
  return count;
}

void MemoryContent::write(std::uint64_t offset, std::string_view bytes) {
  if (bytes.empty()) return;
  if (bytes_.size() < offset + bytes.size()) bytes_.resize(offset + bytes.size());
  bytes_.replace(offset, bytes.size(), bytes);
  allocate(offset, offset + bytes.size());
}

void MemoryContent::punch(std::uint64_t offset, std::uint64_t length) {
  if (offset >= bytes_.size()) return;
  const std::uint64_t end = offset + std::min<std::uint64_t>(length, bytes_.size() - offset);
  std::fill(bytes_.begin() + static_cast<std::ptrdiff_t>(offset),
            bytes_.begin() + static_cast<std::ptrdiff_t>(end), '\0');
  release(offset, end);
}

void MemoryContent::resize(std::uint64_t size) {
  if (size < bytes_.size()) release(size, bytes_.size());
  bytes_.resize(size);
}

void MemoryContent::allocate(std::uint64_t begin, std::uint64_t end) {
  allocated_bytes_ += unallocated_bytes(begin, end - begin);
  // One that ends where the range begins is to be merged as well.
  auto extent = first_after(begin == 0 ? 0 : begin - 1);
  while (extent != extents_.end() && extent->first <= end) {
    begin = std::min(begin, extent->first);
    end = std::max(end, extent->second);
    extent = extents_.erase(extent);
  }
  extents_.emplace_hint(extent, begin, end);
}

void MemoryContent::release(std::uint64_t begin, std::uint64_t end) {
  allocated_bytes_ -= (end - begin) - unallocated_bytes(begin, end - begin);
  auto extent = first_after(begin);
  while (extent != extents_.end() && extent->first < end) {
    const auto [first, last] = *extent;
    extent = extents_.erase(extent);
    if (first < begin) extents_.emplace_hint(extent, first, begin);
    if (last > end) extent = extents_.emplace_hint(extent, end, last);
  }
}

}  // namespace millrace
