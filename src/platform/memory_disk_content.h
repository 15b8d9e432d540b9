#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace millrace {

// The bytes of a file in MemoryDisk, and which of them take space.
//
// Invariants:
//  1. The extents are not empty, lie within the size, and neither overlap nor touch.
//  2. A byte outside of all extents is in a hole: it is zero.
//  3. allocated_bytes() is the sum of their lengths: to the byte, where real disks count blocks.
//
// Thread-compatible. A range must not end beyond UINT64_MAX.
class MemoryContent {
 public:
  std::uint64_t size() const { return bytes_.size(); }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }
  // How many bytes of the range are in a hole or beyond the end.
  std::uint64_t unallocated_bytes(std::uint64_t offset, std::uint64_t length) const;

  // Returns how much there was before the end.
  std::size_t read(std::uint64_t offset, MutableByteView into) const;
  void write(std::uint64_t offset, std::string_view bytes);
  // Does not change the size; what is beyond it is left out.
  void punch(std::uint64_t offset, std::uint64_t length);
  // Grows by a hole.
  void resize(std::uint64_t size);

 private:
  using Extents = std::map<std::uint64_t, std::uint64_t>;  // From first to last + 1.

  // The first extent that ends after `offset`.
  Extents::const_iterator first_after(std::uint64_t offset) const;
  void allocate(std::uint64_t begin, std::uint64_t end);
  void release(std::uint64_t begin, std::uint64_t end);

  std::string bytes_;
  Extents extents_;
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace millrace
