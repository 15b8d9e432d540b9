#include "frontends/nfs4/xdr_writer.h"

#include <cassert>
#include <cstring>
#include <utility>

namespace millrace {

void XdrWriter::u32(std::uint32_t value) {
  const std::uint32_t swapped = __builtin_bswap32(value);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof swapped);
  std::memcpy(bytes_.data() + at, &swapped, sizeof swapped);
}

void XdrWriter::u64(std::uint64_t value) {
  const std::uint64_t swapped = __builtin_bswap64(value);
  const std::size_t at = bytes_.size();
  bytes_.resize(at + sizeof swapped);
  std::memcpy(bytes_.data() + at, &swapped, sizeof swapped);
}

void XdrWriter::pad(std::uint64_t size) { bytes_.resize(bytes_.size() + (4 - size % 4) % 4); }

void XdrWriter::opaque(ByteView bytes) {
  u32(static_cast<std::uint32_t>(bytes.size()));
  fixed(bytes);
}

void XdrWriter::fixed(ByteView bytes) {
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  pad(bytes.size());
}

void XdrWriter::attach(XdrPiece piece) {
  const std::uint64_t size = piece.size();
  assert(size > 0);
  u32(static_cast<std::uint32_t>(size));
  attachments_.push_back({bytes_.size(), std::move(piece)});
  attached_bytes_ += size;
  pad(size);
}

void XdrWriter::patch_u32(Mark at, std::uint32_t value) {
  assert(at.written + sizeof value <= bytes_.size());
  const std::uint32_t swapped = __builtin_bswap32(value);
  std::memcpy(bytes_.data() + at.written, &swapped, sizeof swapped);
}

void XdrWriter::rewind(Mark to) {
  assert(to.written <= bytes_.size() && to.attachments <= attachments_.size());
  bytes_.resize(to.written);
  for (; attachments_.size() > to.attachments; attachments_.pop_back())
    attached_bytes_ -= attachments_.back().piece.size();
}

std::vector<XdrPiece> XdrWriter::take() {
  const auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes_));
  const Slice all = Slice::borrow(*owner, owner);
  std::vector<XdrPiece> pieces;
  std::size_t from = 0;
  for (Attachment& attachment : attachments_) {
    if (attachment.place > from)
      pieces.push_back({.memory = all.part(from, attachment.place - from)});
    from = attachment.place;
    pieces.push_back(std::move(attachment.piece));
  }
  if (from < all.size()) pieces.push_back({.memory = all.part(from)});
  bytes_.clear();
  attachments_.clear();
  attached_bytes_ = 0;
  return pieces;
}

}  // namespace millrace
