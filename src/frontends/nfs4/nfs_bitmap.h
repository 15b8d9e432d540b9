#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>

#include "frontends/nfs4/nfs_attribute.h"
#include "frontends/nfs4/nfs_protocol.h"
#include "frontends/nfs4/xdr_reader.h"
#include "frontends/nfs4/xdr_writer.h"

namespace millrace {

// A set of attributes, as clients ask for them and as we say which follow.
class NfsBitmap {
 public:
  constexpr NfsBitmap() = default;
  constexpr NfsBitmap(std::initializer_list<NfsAttribute> attributes) {
    for (const NfsAttribute attribute : attributes)
      add(attribute);
  }

  // Bits of attributes that nobody here knows are forgotten.
  static NfsBitmap read(XdrReader& reader) {
    NfsBitmap bitmap;
    const std::uint32_t count = reader.count(kNfsBitmapWordsMax);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t word = reader.u32();
      if (i < bitmap.words_.size()) bitmap.words_[i] = word;
    }
    return bitmap;
  }
  void write(XdrWriter& writer) const {
    std::size_t count = words_.size();
    while (count > 0 && words_[count - 1] == 0)
      --count;
    writer.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i)
      writer.u32(words_[i]);
  }

  constexpr void add(NfsAttribute attribute) { word(attribute) |= bit(attribute); }
  constexpr void remove(NfsAttribute attribute) { word(attribute) &= ~bit(attribute); }
  constexpr bool contains(NfsAttribute attribute) const {
    return (words_[static_cast<std::uint32_t>(attribute) / 32] & bit(attribute)) != 0;
  }
  constexpr bool contains_any(const NfsBitmap& other) const { return !((*this) & other).empty(); }
  constexpr bool empty() const { return *this == NfsBitmap(); }

  constexpr NfsBitmap operator&(const NfsBitmap& other) const {
    NfsBitmap both;
    for (std::size_t i = 0; i < words_.size(); ++i)
      both.words_[i] = words_[i] & other.words_[i];
    return both;
  }
  constexpr bool operator==(const NfsBitmap&) const = default;

  // Calls `visit` with each member, in the order of their numbers.
  template <class Visit>
  void for_each(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint32_t left = words_[i]; left != 0; left &= left - 1)
        visit(static_cast<NfsAttribute>(i * 32 + std::countr_zero(left)));
    }
  }

 private:
  static constexpr std::uint32_t bit(NfsAttribute attribute) {
    return std::uint32_t{1} << (static_cast<std::uint32_t>(attribute) % 32);
  }
  constexpr std::uint32_t& word(NfsAttribute attribute) {
    return words_[static_cast<std::uint32_t>(attribute) / 32];
  }

  std::array<std::uint32_t, kNfsAttributeLast / 32 + 1> words_ = {};
};

}  // namespace millrace
