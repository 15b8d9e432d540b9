#include <algorithm>
#include <cmath>

#include "base/file_name.h"
#include "base/little_endian.h"
#include "dataset/manifest.h"

namespace millrace {
namespace {

// Below this the names of the children lie close together, and a search among them touches less
// than the detour over the slots.
constexpr std::uint32_t kSortedChildrenMax = 16;
// Guesses by the value of the hash. Even hashes need two or three; after that it is bisection, so
// that chosen names cannot make it slow.
constexpr int kSlotGuessesMax = 4;
constexpr std::uint64_t kSlotsGuessedMin = 16;
constexpr std::uint64_t kHashEnd = std::uint64_t{1} << 32;
constexpr std::uint64_t kLineBytes = 64;
// More lines than this the processor does not bring in at once.
constexpr std::uint64_t kPreloadBytesMax = 8 * kLineBytes;

}  // namespace

Result<std::optional<EntryIndex>> Manifest::find(EntryIndex parent, std::string_view name) const {
  MR_ASSIGN_OR_RETURN(const ManifestEntry directory, entry(parent));
  MR_ASSIGN_OR_RETURN(const ChildRange range, children(directory));
  if (name.empty() || name.size() > kFileNameBytesMax) return std::nullopt;
  return range.count() <= kSortedChildrenMax ? find_sorted(range, name) : find_hashed(range, name);
}

Result<std::optional<EntryIndex>> Manifest::resolve(std::string_view path) const {
  EntryIndex at = root();
  if (path.empty()) return at;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    MR_ASSIGN_OR_RETURN(const auto found, find(at, path.substr(begin, end - begin)));
    if (!found) return std::nullopt;
    at = *found;
    begin = end + 1;
  }
  return at;
}

Result<std::optional<EntryIndex>> Manifest::find_sorted(ChildRange children,
                                                        std::string_view name) const {
  EntryIndex low = children.first;
  EntryIndex high = children.end;
  while (low < high) {
    const EntryIndex middle = low + (high - low) / 2;
    MR_ASSIGN_OR_RETURN(const std::string_view there, raw_name(middle));
    const int order = there.compare(name);
    if (order == 0) return middle;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

Result<NameSlot> Manifest::slot(std::uint64_t number) const {
  MR_ASSIGN_OR_RETURN(const ByteView bytes, pages_->view(ManifestSection::kSlots,
                                                         number * kNameSlotBytes, kNameSlotBytes));
  return NameSlot{.hash = load_little_endian<std::uint32_t>(bytes.data()),
                  .child = load_little_endian<std::uint32_t>(bytes.data() + 4)};
}

// A search waits for memory, not for the processor. So what it will need next is asked for all at
// once, as far as it can be guessed: the slots around a guess, and the name beside its entry.
void Manifest::preload_slots(std::uint64_t first, std::uint64_t last) const {
  const std::uint64_t begin = first * kNameSlotBytes;
  const std::uint64_t end = last * kNameSlotBytes;
  const std::uint64_t step = end - begin <= kPreloadBytesMax ? kLineBytes : end - begin;
  for (std::uint64_t at = begin; at < end; at += step)
    pages_->preload(ManifestSection::kSlots, at);
  pages_->preload(ManifestSection::kSlots, end);
}

// The names of siblings stand one behind the other and are mostly of one length.
void Manifest::preload_name(ChildRange children, EntryIndex child) const {
  const std::uint64_t guess =
      children.first_name + (child - children.first) * children.name_bytes / children.count();
  pages_->preload(ManifestSection::kNames, guess);
  pages_->preload(ManifestSection::kNames, guess + kLineBytes);
}

// The first slot of the directory whose hash is not below `hash`, or the end of its slots.
Result<std::uint64_t> Manifest::first_slot(ChildRange children, std::uint64_t hash) const {
  std::uint64_t low = children.first;
  std::uint64_t high = children.end;
  std::uint64_t low_hash = 0;  // Bounds of the hashes in [low, high).
  std::uint64_t high_hash = kHashEnd;
  const auto probe = [&](std::uint64_t number) -> Status {
    MR_ASSIGN_OR_RETURN(const NameSlot there, slot(number));
    if (there.hash < hash) {
      low = number + 1;
      low_hash = there.hash;
    } else {
      high = number;
      high_hash = there.hash;
    }
    return {};
  };
  for (int guess = 0; guess < kSlotGuessesMax; ++guess) {
    const std::uint64_t span = high - low;
    if (span < kSlotsGuessedMin || high_hash <= low_hash || hash >= high_hash) break;
    const std::uint64_t middle = low + span * (hash - low_hash) / (high_hash - low_hash);
    // Even hashes are as far from their places as this.
    const auto reach = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(span))) / 2 + 1;
    const std::uint64_t left = middle > low + reach ? middle - reach : low;
    const std::uint64_t right = std::min(middle + reach, high - 1);
    preload_slots(left, right);
    MR_RETURN_IF_ERROR(probe(left));
    if (low <= right && right < high) MR_RETURN_IF_ERROR(probe(right));
  }
  while (low < high)
    MR_RETURN_IF_ERROR(probe(low + (high - low) / 2));
  return low;
}

Result<std::optional<EntryIndex>> Manifest::find_hashed(ChildRange children,
                                                        std::string_view name) const {
  const std::uint32_t hash = name_hash(name);
  MR_ASSIGN_OR_RETURN(std::uint64_t low, first_slot(children, hash));
  std::uint64_t high = low;
  // Nearly always one slot has this hash, or none.
  for (; high < children.end && high - low < 2; ++high) {
    MR_ASSIGN_OR_RETURN(const NameSlot there, slot(high));
    if (there.hash != hash) break;
  }
  if (high - low == 2) {
    MR_ASSIGN_OR_RETURN(high, first_slot(children, std::uint64_t{hash} + 1));
  }
  // Slots of one hash are in the order of their names.
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    MR_ASSIGN_OR_RETURN(const NameSlot there, slot(middle));
    if (there.child < children.first || there.child >= children.end) {
      return wrong("slot", middle, "it holds a child of another directory");
    }
    preload_name(children, there.child);
    MR_ASSIGN_OR_RETURN(const std::string_view found, raw_name(there.child));
    const int order = found.compare(name);
    if (order == 0) return there.child;
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

}  // namespace millrace
