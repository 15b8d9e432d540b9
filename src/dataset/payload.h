#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/little_endian.h"
#include "base/status.h"

namespace millrace {

// Writes numbers and texts one behind the other, for files that only we read back: payloads of
// sorted entries, records of a publish.
class PayloadWriter {
 public:
  template <std::unsigned_integral Number>
  void number(Number value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    store_little_endian(bytes_.data() + at, value);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    raw(as_bytes(text));
  }
  void raw(ByteView bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

  ByteView bytes() const { return bytes_; }
  void clear() { bytes_.clear(); }

 private:
  std::vector<std::byte> bytes_;
};

// Reads them back. After the first thing that is not there everything is empty, and ok() is false:
// it is looked at once, at the end.
class PayloadReader {
 public:
  explicit PayloadReader(ByteView bytes) : rest_(bytes) {}

  template <std::unsigned_integral Number>
  Number number() {
    const ByteView bytes = raw(sizeof(Number));
    return bytes.empty() ? Number{} : load_little_endian<Number>(bytes.data());
  }
  std::string text() { return std::string(as_text(raw(number<std::uint32_t>()))); }
  ByteView raw(std::size_t count) {
    if (count > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const ByteView bytes = rest_.first(count);
    rest_ = rest_.subspan(count);
    return bytes;
  }

  bool ok() const { return ok_; }
  bool at_end() const { return rest_.empty(); }

 private:
  ByteView rest_;
  bool ok_ = true;
};

}  // namespace millrace
