// The state of one object, by hand: no disk, no store, no threads.
#include "cache/cached_object.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "tests/cache/stored_content.h"

namespace millrace {
namespace {

using FlightPtr = std::shared_ptr<Flight>;

// A place on the disk that does nothing.
class NoStoredObject final : public StoredObject {
 public:
  const std::shared_ptr<DiskFile>& file() const override { return file_; }
  std::uint64_t base() const override { return 0; }
  Status read_checksums(UnitRange, std::span<std::uint32_t>) override { return {}; }
  Status write(UnitRange, ByteView, std::span<const std::uint32_t>, WrittenPages) override {
    return {};
  }
  Status forget(UnitRange) override { return {}; }
  Status distrust(UnitRange) override { return {}; }
  Status mark_handed_out() override { return {}; }

 private:
  std::shared_ptr<DiskFile> file_;
};

constexpr std::uint32_t kFetchUnits = kBlockUnits;

class CachedObjectTest : public ::testing::Test {
 protected:
  // Loads the object as if these units were on the disk.
  void load(const std::vector<std::uint32_t>& recorded = {}, bool handed_out = false) {
    Task nothing = [] {};
    ASSERT_EQ(object.begin_load(nothing), CachedObject::Load::kStarting);
    object.loaded(recorded.empty() ? nullptr : std::make_unique<NoStoredObject>(), recorded,
                  handed_out);
  }
  CachedObject::Needs prepare(UnitRange units) {
    return object.prepare(bytes_of(units, object.version().size()), kFetchUnits, false);
  }
  Slice bytes_for(const Flight& flight) {
    return Slice::from_string(
        std::string(bytes_of(flight.units, object.version().size()).length, 'x'));
  }
  // Brings units onto the disk as a reader does.
  void fetch(UnitRange units) {
    for (const FlightPtr& flight : prepare(units).new_ones) {
      object.land(*flight, bytes_for(*flight));
      ASSERT_TRUE(object.may_write(*flight));
      ASSERT_TRUE(object.create([] { return std::make_unique<NoStoredObject>(); }));
      object.retire(flight, std::nullopt);
    }
    ASSERT_TRUE(object.all_ready(units));
  }

  CachedObject object{stored_version("a", 200 * kUnitBytes), {}};
};

TEST_F(CachedObjectTest, IsLoadedOnceForAllWhoWait) {
  int ran = 0;
  Task first = [&] { ++ran; };
  Task second = [&] { ++ran; };
  EXPECT_EQ(object.begin_load(first), CachedObject::Load::kStarting);
  EXPECT_EQ(object.begin_load(second), CachedObject::Load::kRunning);
  EXPECT_FALSE(object.begin_removal()) << "not while it is loaded";
  object.loaded(nullptr, {}, false);
  EXPECT_EQ(ran, 2);
  Task third = [&] { ++ran; };
  EXPECT_EQ(object.begin_load(third), CachedObject::Load::kDone);
  EXPECT_TRUE(third) << "it was not taken";
  EXPECT_EQ(ran, 2);
}

// How many units two misses far apart cause to be fetched.
std::uint32_t fetched_by_two_misses(ObjectContent content) {
  CachedObject object(ObjectVersion(StoreId("s"), ObjectKey("k"), ObjectIdentity("i"),
                                    1000 * kUnitBytes, nullptr, content),
                      {});
  Task nothing = [] {};
  EXPECT_EQ(object.begin_load(nothing), CachedObject::Load::kStarting);
  object.loaded(nullptr, {}, false);
  std::uint32_t units = 0;
  for (const std::uint64_t at : {100, 700}) {
    for (const FlightPtr& flight :
         object.prepare({at * kUnitBytes, 2 * kUnitBytes}, kFetchUnits, true).new_ones)
      units += flight->units.count;
  }
  return units;
}

TEST_F(CachedObjectTest, MissesInAPackFetchWhatIsAroundThem) {
  EXPECT_EQ(fetched_by_two_misses(ObjectContent::kOneFile), 4U);
  EXPECT_GE(fetched_by_two_misses(ObjectContent::kManyFiles), 2U + 16U);
}

TEST_F(CachedObjectTest, OneFlightForAllWhoWantIt) {
  load();
  const CachedObject::Needs first = prepare({4, 4});
  ASSERT_EQ(first.new_ones.size(), 1u);
  EXPECT_EQ(first.new_ones[0]->units, (UnitRange{4, 4}));
  const CachedObject::Needs second = prepare({5, 2});
  EXPECT_TRUE(second.new_ones.empty());
  EXPECT_EQ(second.flights, first.flights);
  EXPECT_TRUE(second.promoted.empty());
  int answers = 0;
  for (int i = 0; i < 3; ++i) {
    object.wait_for(first.flights[0], [&](Result<Slice> data) {
      ++answers;
      EXPECT_EQ(data->size(), 4 * kUnitBytes);
    });
  }
  EXPECT_EQ(answers, 0);
  object.land(*first.flights[0], bytes_for(*first.flights[0]));
  EXPECT_EQ(answers, 3);
  object.wait_for(first.flights[0], [&](const Result<Slice>&) { ++answers; });
  EXPECT_EQ(answers, 4) << "while it is written it answers from memory";
  EXPECT_TRUE(prepare({4, 4}).new_ones.empty());
}

TEST_F(CachedObjectTest, AdjacentUnitsFlyTogether) {
  load({10, 11});
  const CachedObject::Needs inside = prepare({20, 1});
  const CachedObject::Needs needs = prepare({5, 100});
  std::vector<UnitRange> flown;
  for (const FlightPtr& flight : needs.new_ones)
    flown.push_back(flight->units);
  EXPECT_EQ(flown, (std::vector<UnitRange>{{5, 5}, {12, 8}, {21, 43}, {64, 41}}))
      << "around what is there or flies, and cut at blocks";
  EXPECT_EQ(needs.flights.size(), 5u);
  EXPECT_EQ(needs.unchecked, (std::vector<UnitRange>{{10, 2}}));
  EXPECT_EQ(std::ranges::count(needs.flights, inside.flights[0]), 1);
}

TEST(CachedSmallObject, FliesWhole) {
  for (const std::uint32_t fetch_units_max : {1u, 4u, kBlockUnits}) {
    CachedObject object(stored_version("small", 10 * kUnitBytes), {});
    Task nothing = [] {};
    ASSERT_EQ(object.begin_load(nothing), CachedObject::Load::kStarting);
    object.loaded(nullptr, {}, false);
    const CachedObject::Needs needs = object.prepare({3 * kUnitBytes, 10}, fetch_units_max, true);
    ASSERT_EQ(needs.new_ones.size(), 1u);
    EXPECT_EQ(needs.new_ones[0]->units, (UnitRange{0, 10})) << "a segment takes no parts";
    EXPECT_EQ(needs.flights, needs.new_ones);
    EXPECT_TRUE(object.prefetch({9, 1}, fetch_units_max).empty());
    EXPECT_TRUE(object.goes_whole());
  }
}

TEST_F(CachedObjectTest, AReaderPromotesWhatWasSpeculative) {
  load();
  const std::vector<FlightPtr> ahead = object.prefetch({0, 64}, kFetchUnits);
  ASSERT_EQ(ahead.size(), 1u);
  EXPECT_EQ(object.urgency(*ahead[0]), Urgency::kSpeculative);
  EXPECT_EQ(prepare({3, 1}).promoted.size(), 1u);
  EXPECT_EQ(prepare({4, 1}).promoted.size(), 0u) << "once is enough";
  EXPECT_EQ(object.submitted(*ahead[0], {}), Urgency::kDemanded);
  EXPECT_TRUE(object.prefetch({0, 64}, kFetchUnits).empty());
}

TEST_F(CachedObjectTest, ASequentialReaderIsFetchedAheadOf) {
  load();
  EXPECT_EQ(object.prepare({0, kMiB}, kFetchUnits, true).new_ones.size(), 1u);
  const CachedObject::Needs needs = object.prepare({kMiB, kMiB}, kFetchUnits, true);
  ASSERT_GT(needs.new_ones.size(), 1u);
  EXPECT_EQ(needs.flights.size(), 1u) << "nobody waits for what is ahead";
  EXPECT_EQ(needs.new_ones[0]->urgency, Urgency::kDemanded);
  EXPECT_EQ(needs.new_ones[1]->urgency, Urgency::kSpeculative);
  EXPECT_EQ(needs.new_ones[1]->units.first, 2 * kMiB / kUnitBytes);
}

TEST_F(CachedObjectTest, UnitsAreReadyOnceTheyAreWritten) {
  load();
  const FlightPtr flight = prepare({0, 2}).new_ones[0];
  int ended = 0;
  object.land(*flight, bytes_for(*flight));
  EXPECT_FALSE(object.all_ready({0, 1}));
  object.wait_for_end(flight, [&] { ++ended; });
  EXPECT_EQ(ended, 0);
  ASSERT_TRUE(object.create([] { return std::make_unique<NoStoredObject>(); }));
  object.retire(flight, std::nullopt);
  EXPECT_EQ(ended, 1);
  object.wait_for_end(flight, [&] { ++ended; });
  EXPECT_EQ(ended, 2);
  EXPECT_TRUE(object.all_ready({0, 2}));
  EXPECT_TRUE(prepare({0, 2}).flights.empty());
  EXPECT_FALSE(object.complete());
}

TEST_F(CachedObjectTest, WhatCouldNotBeWrittenIsFetchedAgain) {
  load();
  const FlightPtr flight = prepare({0, 2}).new_ones[0];
  object.land(*flight, bytes_for(*flight));
  object.retire(flight, CacheSkip::kNoRoom);
  EXPECT_FALSE(object.all_ready({0, 2}));
  EXPECT_EQ(prepare({0, 2}).new_ones.size(), 1u);
}

TEST_F(CachedObjectTest, AFailedFlightTellsAllAndIsTriedAnew) {
  load();
  const FlightPtr flight = prepare({0, 2}).new_ones[0];
  int failed = 0;
  int ended = 0;
  const auto waiter = [&](const Result<Slice>& data) {
    EXPECT_EQ(data.error().code(), StatusCode::kUnavailable);
    ++failed;
  };
  object.wait_for(flight, waiter);
  object.wait_for_end(flight, [&] { ++ended; });
  object.fail(flight, Status(StatusCode::kUnavailable, "no"));
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(ended, 1);
  object.wait_for(flight, waiter);
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(prepare({0, 2}).new_ones.size(), 1u);
}

TEST_F(CachedObjectTest, FoundUnitsAreReadyOnceTheyAreVerified) {
  load({0, 1, 2, 7});
  EXPECT_FALSE(object.all_ready({0, 1}));
  EXPECT_EQ(object.on_disk({0, 200}, false), (std::vector<UnitRange>{{0, 3}, {7, 1}}));
  object.verified({0, 2}, object.generation());
  EXPECT_TRUE(object.all_ready({0, 2}));
  EXPECT_EQ(object.on_disk({0, 200}, false), (std::vector<UnitRange>{{2, 1}, {7, 1}}));
  EXPECT_EQ(object.on_disk({1, 2}, true), (std::vector<UnitRange>{{1, 2}}));
}

TEST_F(CachedObjectTest, AVerdictFromBeforeSomethingWasFreedDoesNotCount) {
  load({0, 64});
  const std::uint64_t generation = object.generation();
  ASSERT_EQ(object.begin_freeing({64, 64}), CachedObject::Freeing::kStarted);
  object.verified({0, 1}, generation);
  EXPECT_FALSE(object.all_ready({0, 1}));
}

// The one who checks looks which units are there, then at the generation, then at the bytes, which
// are still good until they are punched.
TEST_F(CachedObjectTest, AUnitThatIsBeingFreedNeverBecomesReady) {
  load({0, 1});
  ASSERT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kStarted);
  object.verified({0, 2}, object.generation());
  EXPECT_FALSE(object.all_ready({0, 1}));
  object.freed({0, 64});
  EXPECT_FALSE(object.all_ready({0, 1}));
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kNothing);
}

TEST_F(CachedObjectTest, FreeingRaisesTheGenerationAndClearsTheBits) {
  load();
  fetch({0, 64});
  const std::uint64_t generation = object.generation();
  ASSERT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kStarted);
  EXPECT_GT(object.generation(), generation);
  EXPECT_FALSE(object.all_ready({0, 1}));
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy);
  EXPECT_FALSE(object.begin_removal());
  const FlightPtr flight = prepare({3, 1}).new_ones[0];
  object.land(*flight, bytes_for(*flight));
  EXPECT_FALSE(object.may_write(*flight)) << "its block is being freed";
  object.freed({0, 64});
  EXPECT_TRUE(object.may_write(*flight));
}

TEST_F(CachedObjectTest, WhatFliesIsNotFreed) {
  load();
  fetch({0, 2});
  const FlightPtr flight = prepare({2, 1}).new_ones[0];
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy);
  EXPECT_EQ(object.begin_freeing({64, 64}), CachedObject::Freeing::kNothing);
  EXPECT_FALSE(object.begin_removal());
  EXPECT_TRUE(object.all_ready({0, 2}));
  object.land(*flight, bytes_for(*flight));
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy) << "it is being written";
  object.retire(flight, std::nullopt);
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kStarted);
}

TEST_F(CachedObjectTest, BadUnitsAreTakenOutOfUse) {
  load();
  fetch({0, 4});
  const std::uint64_t generation = object.generation();
  EXPECT_TRUE(object.begin_distrust({1, 1}));
  EXPECT_GT(object.generation(), generation);
  EXPECT_FALSE(object.begin_distrust({1, 1})) << "somebody else found it first";
  EXPECT_EQ(object.on_disk({0, 4}, true), (std::vector<UnitRange>{{0, 1}, {2, 2}}));
  const FlightPtr flight = prepare({0, 4}).new_ones.at(0);
  EXPECT_EQ(flight->units, (UnitRange{1, 1}));
  EXPECT_FALSE(object.may_write(*flight)) << "its record is being emptied";
  object.freed({1, 1});
  EXPECT_TRUE(object.may_write(*flight));
}

TEST_F(CachedObjectTest, AHandedOutObjectGoesWhole) {
  load();
  fetch({0, 64});
  EXPECT_FALSE(object.goes_whole());
  object.add_holder();
  EXPECT_TRUE(object.goes_whole());
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy);
  EXPECT_EQ(object.drop_holder(), 0u) << "it was not unlinked";
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy)
      << "a duplicate of the descriptor may live";
}

TEST_F(CachedObjectTest, AnObjectThatWasHandedOutInAnotherRunGoesWhole) {
  load({0}, true);
  EXPECT_TRUE(object.goes_whole());
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy);
}

TEST_F(CachedObjectTest, UnlinkedBytesAreTheLastHoldersToReturn) {
  load();
  fetch({0, 64});
  fetch({199, 1});
  object.add_holder();
  object.add_holder();
  EXPECT_EQ(object.begin_removal(), 65 * kUnitBytes);
  EXPECT_FALSE(object.begin_removal()) << "once";
  EXPECT_EQ(object.drop_holder(), 0u);
  EXPECT_EQ(object.drop_holder(), 65 * kUnitBytes);
}

TEST_F(CachedObjectTest, ARemovedObjectIsReadButNotWritten) {
  load();
  fetch({0, 64});
  const std::uint64_t generation = object.generation();
  EXPECT_EQ(object.begin_removal(), 0u) << "nobody holds it";
  EXPECT_GT(object.generation(), generation);
  EXPECT_FALSE(object.all_ready({0, 1}));
  const FlightPtr flight = prepare({0, 1}).new_ones.at(0);
  object.land(*flight, bytes_for(*flight));
  EXPECT_FALSE(object.may_write(*flight));
  object.retire(flight, CacheSkip::kNoRoom);
  EXPECT_EQ(object.begin_freeing({0, 64}), CachedObject::Freeing::kBusy);
  EXPECT_FALSE(object.begin_distrust({0, 1}));
  object.verified({0, 1}, object.generation());
  EXPECT_FALSE(object.all_ready({0, 1}));
}

TEST_F(CachedObjectTest, TheLastUnitIsNotCountedAsAFullOne) {
  CachedObject odd(stored_version("odd", 3 * kUnitBytes - 100), {});
  Task nothing = [] {};
  ASSERT_EQ(odd.begin_load(nothing), CachedObject::Load::kStarting);
  odd.loaded(nullptr, {0, 2}, true);
  odd.add_holder();
  EXPECT_EQ(odd.begin_removal(), 2 * kUnitBytes - 100);
  CachedObject empty(stored_version("empty", 0), {});
  EXPECT_EQ(empty.begin_removal(), 0u);
}

// Its records may be read before they are unlinked, or its place in a segment before it is freed.
TEST_F(CachedObjectTest, WhatIsBeingRemovedIsNotLoaded) {
  EXPECT_EQ(object.begin_removal(), 0u);
  Task nothing = [] {};
  EXPECT_EQ(object.begin_load(nothing), CachedObject::Load::kDone);
  EXPECT_TRUE(object.on_disk({0, 200}, true).empty());
  EXPECT_EQ(object.stored(), nullptr);
}

TEST_F(CachedObjectTest, IsCompleteWhenEveryUnitIsReady) {
  load();
  fetch({0, 199});
  EXPECT_FALSE(object.complete());
  fetch({199, 1});
  EXPECT_TRUE(object.complete());
  ASSERT_TRUE(object.begin_distrust({5, 1}));
  EXPECT_FALSE(object.complete());
  object.freed({5, 1});
  fetch({5, 1});
  EXPECT_TRUE(object.complete());
  ASSERT_EQ(object.begin_freeing({64, 64}), CachedObject::Freeing::kStarted);
  EXPECT_FALSE(object.complete());
}

TEST_F(CachedObjectTest, OnePlaceIsCreated) {
  load();
  int made = 0;
  const auto failing = [&]() -> Result<std::unique_ptr<StoredObject>> {
    ++made;
    return failure(StatusCode::kIoError, "no");
  };
  const auto making = [&]() -> Result<std::unique_ptr<StoredObject>> {
    ++made;
    return std::make_unique<NoStoredObject>();
  };
  EXPECT_EQ(object.create(failing).error().code(), StatusCode::kIoError);
  EXPECT_EQ(object.stored(), nullptr);
  StoredObject* const stored = *object.create(making);
  EXPECT_EQ(*object.create(making), stored);
  EXPECT_EQ(object.stored(), stored);
  EXPECT_EQ(made, 2);
}

TEST_F(CachedObjectTest, AUseIsNotedOncePerTick) {
  EXPECT_TRUE(object.note_touch(0, 1));
  EXPECT_FALSE(object.note_touch(0, 1));
  EXPECT_TRUE(object.note_touch(1, 1));
  EXPECT_TRUE(object.note_touch(0, 2));
}

}  // namespace
}  // namespace millrace
