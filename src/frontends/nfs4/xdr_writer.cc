#include "frontends/nfs4/xdr_writer.h"

#include <algorithm>
#include <cassert>

namespace millrace {
namespace {

// Enough for the answers to most calls.
constexpr std::size_t kFirstBytes = 512;

}  // namespace

void XdrWriter::grow(std::size_t size) {
  Buffer larger = Buffer::allocate(std::max({kFirstBytes, 2 * memory_.size(), size_ + size}));
  if (size_ > 0) std::memcpy(larger.data(), data_, size_);
  memory_ = std::move(larger);
  data_ = memory_.data();
}

void XdrWriter::pad(std::uint64_t size) {
  const std::size_t bytes = (4 - size % 4) % 4;
  if (bytes > 0) std::memset(extend(bytes), 0, bytes);
}

void XdrWriter::opaque(ByteView bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  fixed(bytes);
}

void XdrWriter::fixed(ByteView bytes) {
  if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
  pad(bytes.size());
}

void XdrWriter::attach(XdrPiece piece) {
  const std::uint64_t size = piece.size();
  assert(size > 0);
  u32(static_cast<std::uint32_t>(size));
  attachments_.push_back({size_, std::move(piece)});
  attached_bytes_ += size;
  pad(size);
}

void XdrWriter::patch_u32(Mark at, std::uint32_t value) {
  assert(at.written + sizeof value <= size_);
  store_xdr(data_ + at.written, value);
}

void XdrWriter::rewind(Mark to) {
  assert(to.written <= size_ && to.attachments <= attachments_.size());
  size_ = to.written;
  for (; attachments_.size() > to.attachments; attachments_.pop_back())
    attached_bytes_ -= attachments_.back().piece.size();
}

std::vector<XdrPiece> XdrWriter::take() {
  memory_.truncate(size_);
  const Slice all = std::move(memory_).freeze();
  std::vector<XdrPiece> pieces;
  pieces.reserve(2 * attachments_.size() + 1);
  std::size_t from = 0;
  for (Attachment& attachment : attachments_) {
    if (attachment.place > from)
      pieces.push_back({.memory = all.part(from, attachment.place - from)});
    from = attachment.place;
    pieces.push_back(std::move(attachment.piece));
  }
  if (from < all.size()) pieces.push_back({.memory = all.part(from)});
  data_ = nullptr;
  size_ = 0;
  attachments_.clear();
  attached_bytes_ = 0;
  return pieces;
}

}  // namespace millrace
