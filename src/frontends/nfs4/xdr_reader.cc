#include "frontends/nfs4/xdr_reader.h"

#include <fmt/format.h>

namespace millrace {
namespace {

// Of a field of this size.
std::size_t xdr_padding(std::size_t size) { return (4 - size % 4) % 4; }

}  // namespace

bool XdrReader::boolean() {
  const std::uint32_t value = u32();
  if (value > 1) fail("a boolean is neither 0 nor 1");
  return ok() && value == 1;
}

ByteView XdrReader::opaque(std::size_t bytes_max) {
  const std::uint32_t size = u32();
  if (size > bytes_max) fail("a field is longer than it may be");
  return fixed(ok() ? size : 0);
}

ByteView XdrReader::fixed(std::size_t size) {
  const ByteView bytes = take(size, "the bytes end inside a field");
  take(xdr_padding(size), "the bytes end inside the padding of a field");
  return ok() ? bytes : ByteView();
}

std::uint32_t XdrReader::count(std::uint32_t count_max, std::size_t element_bytes_min) {
  const std::uint32_t count = u32();
  if (count > count_max) fail("there are more elements than there may be");
  if (count > remaining() / element_bytes_min) fail("the bytes end before the last element");
  return ok() ? count : 0;
}

void XdrReader::fail(const char* why) {
  if (ok()) failure_ = why;
}

Status XdrReader::status() const {
  if (ok()) return {};
  return {StatusCode::kCorruption,
          fmt::format("{}, at byte {} of {}", failure_, position_, bytes_.size())};
}

}  // namespace millrace
