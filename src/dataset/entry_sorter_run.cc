#include "dataset/entry_sorter_run.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::size_t kSortPathBytesAt = 4;
constexpr std::size_t kSortDepthAt = 6;
constexpr std::size_t kSortSequenceAt = 8;
constexpr unsigned kSortRankShift = 56;
constexpr unsigned kSortKindShift = 48;

}  // namespace

void SortRecord::append_to(std::vector<std::byte>& out, std::string_view path, EntryKind kind,
                           bool implied, std::uint64_t number, ByteView payload) {
  const Rank rank = kind != EntryKind::kDirectory ? Rank::kOther
                    : implied                     ? Rank::kImplied
                                                  : Rank::kDirectory;
  const std::size_t at = out.size();
  out.resize(at + kHeadBytes + path.size() + payload.size());
  std::byte* const head = out.data() + at;
  store_little_endian(head, static_cast<std::uint32_t>(payload.size()));
  store_little_endian(head + kSortPathBytesAt, static_cast<std::uint16_t>(path.size()));
  store_little_endian(head + kSortDepthAt, static_cast<std::uint16_t>(path_depth(path)));
  store_little_endian(head + kSortSequenceAt, std::uint64_t(rank) << kSortRankShift |
                                                  std::uint64_t(kind) << kSortKindShift | number);
  std::byte* const key = head + kHeadBytes;
  std::ranges::replace_copy(as_bytes(path), key, std::byte{'/'}, std::byte{0});
  std::ranges::copy(payload, key + path.size());
}

std::size_t SortRecord::bytes() const {
  return kHeadBytes + key().size() + load_little_endian<std::uint32_t>(bytes_);
}

std::string_view SortRecord::key() const {
  return as_text(
      {bytes_ + kHeadBytes, load_little_endian<std::uint16_t>(bytes_ + kSortPathBytesAt)});
}

std::size_t SortRecord::depth() const {
  return load_little_endian<std::uint16_t>(bytes_ + kSortDepthAt);
}

std::uint64_t SortRecord::sequence() const {
  return load_little_endian<std::uint64_t>(bytes_ + kSortSequenceAt);
}

EntryKind SortRecord::kind() const {
  return static_cast<EntryKind>(sequence() >> kSortKindShift & 0xff);
}

SortRecord::Rank SortRecord::rank() const {
  return static_cast<Rank>(sequence() >> kSortRankShift);
}

ByteView SortRecord::payload() const {
  return {bytes_ + kHeadBytes + key().size(), load_little_endian<std::uint32_t>(bytes_)};
}

bool SortRecord::operator<(const SortRecord& other) const {
  if (depth() != other.depth()) return depth() < other.depth();
  // char_traits<char> compares as unsigned bytes.
  const int keys = key().compare(other.key());
  return keys != 0 ? keys < 0 : sequence() < other.sequence();
}

SortRun::SortRun(const std::vector<std::byte>& arena, const std::vector<std::uint32_t>& order)
    : arena_(&arena), order_(&order) {}

SortRun::SortRun(ManifestSpoolReader reader) : reader_(std::move(reader)) {}

Result<bool> SortRun::advance() {
  if (!reader_) {
    if (next_ == order_->size()) return false;
    current_ = arena_->data() + (*order_)[next_++];
    return true;
  }
  if (reader_->at_end()) return false;
  MR_ASSIGN_OR_RETURN(const ByteView head, reader_->peek(SortRecord::kHeadBytes));
  MR_ASSIGN_OR_RETURN(const ByteView whole, reader_->read(SortRecord(head.data()).bytes()));
  current_ = whole.data();
  return true;
}

}  // namespace millrace
