#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace millrace {

// An index from the hash of something to its slot in somebody's table. It keeps neither keys nor
// hashes: who calls compares keys, and says the hash of what is in a slot. So it takes 5 to 11
// bytes for each slot.
//
// Invariants:
//  1. There are a power of two of places, at most 3/4 of them taken.
//  2. Between the place that a hash names and the one that has its slot, none is free.
//
// Thread-compatible.
class SlotIndex {
 public:
  using Slot = std::uint32_t;
  static constexpr Slot kNone = UINT32_MAX;

  // The slot that `matches(slot)`, or kNone.
  template <typename Matches>
  Slot find(std::uint64_t hash, const Matches& matches) const {
    if (places_.empty()) return kNone;
    for (std::size_t place = home(hash);; place = next(place)) {
      const Slot slot = places_[place];
      if (slot == kNone || matches(slot)) return slot;
    }
  }

  // The slot must not be there. `hash_of(slot)` says the hash of any that is, and of the new one.
  template <typename HashOf>
  void add(Slot slot, const HashOf& hash_of) {
    if ((size_ + 1) * 4 > places_.size() * 3) grow(hash_of);
    enter(slot, hash_of(slot));
    ++size_;
  }

  // The slot must be there. Slots behind the gap move into it where the walk from their home would
  // otherwise end too early; so no marks of removed ones pile up.
  template <typename HashOf>
  void remove(Slot slot, const HashOf& hash_of) {
    std::size_t gap = home(hash_of(slot));
    while (places_[gap] != slot)
      gap = next(gap);
    const std::size_t mask = places_.size() - 1;
    for (std::size_t place = next(gap); places_[place] != kNone; place = next(place)) {
      const std::size_t from_home = (place - home(hash_of(places_[place]))) & mask;
      if (from_home < ((place - gap) & mask)) continue;
      places_[gap] = places_[place];
      gap = place;
    }
    places_[gap] = kNone;
    --size_;
  }

  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return places_.capacity() * sizeof(Slot); }

 private:
  std::size_t home(std::uint64_t hash) const { return hash & (places_.size() - 1); }
  std::size_t next(std::size_t place) const { return (place + 1) & (places_.size() - 1); }

  void enter(Slot slot, std::uint64_t hash) {
    std::size_t place = home(hash);
    while (places_[place] != kNone)
      place = next(place);
    places_[place] = slot;
  }

  template <typename HashOf>
  void grow(const HashOf& hash_of) {
    constexpr std::size_t kFirst = 64;
    const std::size_t size = places_.empty() ? kFirst : places_.size() * 2;
    const std::vector<Slot> old = std::exchange(places_, std::vector<Slot>(size, kNone));
    for (const Slot slot : old) {
      if (slot != kNone) enter(slot, hash_of(slot));
    }
  }

  std::vector<Slot> places_;
  std::size_t size_ = 0;
};

}  // namespace millrace
