#include "cache/segment_table.h"

#include <map>
#include <random>
#include <utility>

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Few distinct first bytes, so that digests crowd into the same buckets.
ObjectDigest crowded_digest(std::uint64_t n) {
  ObjectDigest digest;
  digest.bytes[0] = static_cast<std::byte>(n % 5 == 0 ? 0xff : n % 7);
  for (std::size_t i = 0; i < 8; ++i)
    digest.bytes[8 + i] = static_cast<std::byte>(n >> (8 * i));
  return digest;
}

ObjectDigest spread_digest(std::mt19937_64& random) {
  ObjectDigest digest;
  for (std::byte& byte : digest.bytes)
    byte = static_cast<std::byte>(random());
  return digest;
}

void run_segment_table_model(std::uint64_t seed, bool crowded) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<ObjectDigest> digests(crowded ? 200 : 9000);
  for (std::size_t n = 0; n < digests.size(); ++n) {
    digests[n] = crowded ? crowded_digest(n) : spread_digest(random);
  }
  SegmentTable table;
  std::map<ObjectDigest, SegmentPlace> model;
  for (std::uint32_t step = 0; step < 30'000; ++step) {
    const ObjectDigest& digest = digests[random() % digests.size()];
    const SegmentPlace* found = table.find(digest);
    ASSERT_EQ(found != nullptr, model.contains(digest));
    if (found != nullptr) {
      ASSERT_EQ(*found, model.at(digest));
      table.erase(digest);
      model.erase(digest);
    } else {
      const SegmentPlace place{digest, step / 100, step, step % 100, 1, 2};
      table.insert(place);
      model.emplace(digest, place);
    }
    ASSERT_EQ(table.size(), model.size());
  }
  for (const ObjectDigest& digest : digests) {
    ASSERT_EQ(table.find(digest) != nullptr, model.contains(digest));
  }
  const auto places = table.oldest_first();
  ASSERT_EQ(places.size(), model.size());
  for (std::size_t i = 1; i < places.size(); ++i) {
    ASSERT_LT(places[i - 1]->page, places[i]->page);
  }
}

TEST(SegmentTable, IsAMap) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    run_segment_table_model(seed, true);
    run_segment_table_model(seed, false);
  }
}

// As a start does it: whole segments, in which some of the digests come again.
void run_segment_table_bulk_model(std::uint64_t seed, bool crowded) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<ObjectDigest> digests(crowded ? 200 : 9000);
  for (std::size_t n = 0; n < digests.size(); ++n) {
    digests[n] = crowded ? crowded_digest(n) : spread_digest(random);
  }
  SegmentTable table;
  std::map<ObjectDigest, SegmentPlace> model;
  for (std::uint32_t segment = 0; segment < 60; ++segment) {
    std::vector<SegmentPlace> places;
    std::vector<SegmentPlace> expected;
    for (std::uint32_t slot = 0; slot < random() % 200; ++slot) {
      const SegmentPlace place{digests[random() % digests.size()], segment, slot * 2, slot, 2, 3};
      places.push_back(place);
      const auto [known, is_new] = model.try_emplace(place.digest, place);
      if (!is_new) expected.push_back(std::exchange(known->second, place));
    }
    std::vector<SegmentPlace> replaced;
    table.insert_or_replace(places, [&](const SegmentPlace& older) { replaced.push_back(older); });
    ASSERT_EQ(replaced, expected);
    ASSERT_EQ(table.size(), model.size());
    if (model.empty()) continue;
    const ObjectDigest gone = model.begin()->first;
    table.erase(gone);
    model.erase(gone);
  }
  for (const ObjectDigest& digest : digests) {
    const SegmentPlace* found = table.find(digest);
    ASSERT_EQ(found != nullptr, model.contains(digest));
    if (found != nullptr) {
      ASSERT_EQ(*found, model.at(digest));
    }
  }
}

TEST(SegmentTable, TakesManyAtATime) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    run_segment_table_bulk_model(seed, true);
    run_segment_table_bulk_model(seed, false);
  }
}

TEST(SegmentTable, TakesLittleMemory) {
  std::mt19937_64 random(1);
  SegmentTable table;
  for (std::uint32_t n = 0; n < 300'000; ++n) {
    table.insert({spread_digest(random), 0, n, n, 1, 2});
    if (n > 100'000 && n % 1000 == 0) {
      ASSERT_LE(table.memory_bytes(), std::size_t{n} * 48);
    }
  }
}

}  // namespace
}  // namespace millrace
