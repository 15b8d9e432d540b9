#include "frontends/nfs4/rpc_record.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace millrace {

Status RpcRecords::begin_fragment() {
  const std::uint32_t mark = static_cast<std::uint32_t>(mark_[0]) << 24 |
                             static_cast<std::uint32_t>(mark_[1]) << 16 |
                             static_cast<std::uint32_t>(mark_[2]) << 8 | mark_[3];
  last_ = (mark & kRpcLastFragment) != 0;
  fragment_left_ = mark & ~kRpcLastFragment;
  if (fragment_left_ > limits_.record_bytes_max - record_.size()) {
    return {StatusCode::kResourceExhausted,
            fmt::format("a record of at least {} bytes is longer than {}",
                        record_.size() + fragment_left_, limits_.record_bytes_max)};
  }
  if (++fragments_ > limits_.fragments_max) {
    return {StatusCode::kResourceExhausted,
            fmt::format("a record is cut into more than {} fragments", limits_.fragments_max)};
  }
  return {};
}

Result<std::optional<Slice>> RpcRecords::next(ByteView& bytes) {
  for (;;) {
    while (mark_size_ < kRpcMarkBytes) {
      if (bytes.empty()) return std::nullopt;
      mark_[mark_size_++] = std::to_integer<std::uint8_t>(bytes.front());
      bytes = bytes.subspan(1);
      if (mark_size_ == kRpcMarkBytes) MR_RETURN_IF_ERROR(begin_fragment());
    }
    const std::size_t size = std::min(fragment_left_, bytes.size());
    if (last_ && record_.empty() && size == fragment_left_) {
      Slice whole = Slice::copy_of(bytes.first(size));
      bytes = bytes.subspan(size);
      fragment_left_ = mark_size_ = fragments_ = 0;
      return whole;
    }
    record_ += as_text(bytes.first(size));
    bytes = bytes.subspan(size);
    fragment_left_ -= size;
    if (fragment_left_ > 0) return std::nullopt;
    mark_size_ = 0;
    if (!last_) continue;
    fragments_ = 0;
    return Slice::from_string(std::exchange(record_, {}));
  }
}

}  // namespace millrace
