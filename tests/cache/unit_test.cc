#include "cache/unit.h"

#include <cstdint>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "cache/unit_bits.h"

namespace millrace {
namespace {

TEST(Unit, CountsUnitsAndBlocksUpToTheEnd) {
  EXPECT_EQ(unit_count(0), 0u);
  EXPECT_EQ(unit_count(1), 1u);
  EXPECT_EQ(unit_count(kUnitBytes), 1u);
  EXPECT_EQ(unit_count(kUnitBytes + 1), 2u);
  EXPECT_EQ(block_count(0), 0u);
  EXPECT_EQ(block_count(kBlockBytes), 1u);
  EXPECT_EQ(block_count(kBlockBytes + 1), 2u);
  EXPECT_EQ(unit_count(5 * kTiB), 5u * 16 * 1024 * 1024) << "the largest object of S3";
}

TEST(Unit, ARangeOfBytesTouchesUnits) {
  EXPECT_EQ(units_of({0, 0}), (UnitRange{0, 0}));
  EXPECT_EQ(units_of({3 * kUnitBytes + 5, 0}), (UnitRange{3, 0}));
  EXPECT_EQ(units_of({kUnitBytes - 1, 1}), (UnitRange{0, 1}));
  EXPECT_EQ(units_of({kUnitBytes - 1, 2}), (UnitRange{0, 2}));
  EXPECT_EQ(units_of({kUnitBytes, kUnitBytes}), (UnitRange{1, 1}));
}

TEST(Unit, TheLastUnitIsCutAtTheEnd) {
  const std::uint64_t size = 2 * kUnitBytes + 10;
  EXPECT_EQ(bytes_of({2, 1}, size), (ByteRange{2 * kUnitBytes, 10}));
  EXPECT_EQ(bytes_of({0, 3}, size), (ByteRange{0, size}));
  EXPECT_EQ(bytes_of({3, 1}, size), (ByteRange{size, 0}));
  EXPECT_EQ(bytes_of({80'000'000, 1}, 10 * kTiB).offset, 80'000'000 * kUnitBytes);
}

TEST(UnitBits, AreASetOfUnits) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto units = static_cast<std::uint32_t>(random() % 300 + 1);
    UnitBits bits(units);
    std::set<std::uint32_t> model;
    for (int step = 0; step < 300; ++step) {
      const auto first = static_cast<std::uint32_t>(random() % units);
      const UnitRange range{first, static_cast<std::uint32_t>(random() % (units - first + 1))};
      const std::size_t before = model.size();
      if (random() % 2 == 0) {
        for (std::uint32_t unit = range.first; unit < range.end(); ++unit)
          model.insert(unit);
        ASSERT_EQ(bits.set(range), model.size() - before);
      } else {
        for (std::uint32_t unit = range.first; unit < range.end(); ++unit)
          model.erase(unit);
        ASSERT_EQ(bits.clear(range), before - model.size());
      }
      bool all = true;
      const UnitRange asked{first, static_cast<std::uint32_t>(random() % (units - first + 1))};
      for (std::uint32_t unit = asked.first; unit < asked.end(); ++unit)
        all = all && model.contains(unit);
      ASSERT_EQ(bits.all(asked), all);
    }
    for (std::uint32_t unit = 0; unit < units; ++unit)
      ASSERT_EQ(bits.test(unit), model.contains(unit));
  }
}

TEST(UnitBits, AnEmptyObjectHasNone) {
  UnitBits bits(0);
  EXPECT_TRUE(bits.all({0, 0}));
  EXPECT_EQ(bits.set({0, 0}), 0u);
}

}  // namespace
}  // namespace millrace
