#include "cache/slot_index.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Hashes of few bits, so that many share a place and chains run over the end of the table.
TEST(SlotIndex, IsAMap) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    constexpr std::uint32_t kKeys = 700;
    const std::uint64_t hash_bits = seed % 12;
    std::vector<std::uint64_t> hashes(kKeys);
    for (std::uint64_t& hash : hashes)
      hash = ~(random() & ((std::uint64_t{1} << hash_bits) - 1));
    const auto hash_of = [&](SlotIndex::Slot slot) { return hashes[slot]; };
    SlotIndex index;
    std::vector<bool> there(kKeys);
    std::size_t size = 0;
    for (int step = 0; step < 5000; ++step) {
      const auto slot = static_cast<SlotIndex::Slot>(random() % kKeys);
      const SlotIndex::Slot found =
          index.find(hashes[slot], [&](SlotIndex::Slot any) { return any == slot; });
      ASSERT_EQ(found, there[slot] ? slot : SlotIndex::kNone);
      if (there[slot]) {
        index.remove(slot, hash_of);
        --size;
      } else {
        index.add(slot, hash_of);
        ++size;
      }
      there[slot] = !there[slot];
      ASSERT_EQ(index.size(), size);
    }
  }
}

TEST(SlotIndex, TakesFewBytes) {
  SlotIndex index;
  const auto hash_of = [](SlotIndex::Slot slot) { return slot * 0x9e3779b97f4a7c15U; };
  for (SlotIndex::Slot slot = 0; slot < 100'000; ++slot)
    index.add(slot, hash_of);
  EXPECT_LE(index.memory_bytes(), 100'000U * 11);
}

}  // namespace
}  // namespace millrace
