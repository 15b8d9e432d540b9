#include "dataset/registry.h"

#include <gtest/gtest.h>

#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

using std::chrono::days;
using std::chrono::hours;

class RegistryTest : public ::testing::Test {
 protected:
  Result<Reservation> reserve(const Registry& registry, std::string_view ref) {
    return registry.reserve(world_.context, ref_of(ref), {});
  }
  VersionState state(std::string_view ref) {
    return alice_.version(world_.context, ref_of(ref)).value().state();
  }
  // The code of reserving; success is taken back.
  StatusCode reserving(std::string_view ref) {
    const auto reservation = reserve(alice_, ref);
    if (!reservation) return reservation.error().code();
    EXPECT_TRUE(alice_.abort(world_.context, *reservation, "test").ok());
    return StatusCode::kOk;
  }

  RegistryWorld world_;
  const Registry alice_ = world_.registry("alice");
  const Registry bob_ = world_.registry("bob");
};

TEST_F(RegistryTest, AVersionIsInvisibleUntilItsCommit) {
  const auto reservation = reserve(alice_, "a@v1").value();
  EXPECT_EQ(state("a@v1"), VersionState::kReserved);
  EXPECT_EQ(alice_.resolve(world_.context, ref_of("a@v1")).error().code(), StatusCode::kNotFound);
  ASSERT_TRUE(alice_.commit(world_.context, reservation, facts_of("a")));
  const auto entry = bob_.resolve(world_.context, ref_of("a@v1")).value();
  EXPECT_EQ(entry.facts->content_digest, facts_of("a").content_digest);
}

TEST_F(RegistryTest, TheSecondIsToldWhoHoldsTheName) {
  ASSERT_TRUE(reserve(alice_, "a@v1"));
  const auto refused = reserve(bob_, "a@v1");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kConflict);
  EXPECT_EQ(refused.error().message(),
            "a@v1 is being made by alice@node7, process 4711, since 2026-01-01T00:00:00.000Z. If "
            "that process is dead, free the name with 'millrace version rm --abort a@v1'");
}

TEST_F(RegistryTest, AnAbortedNameIsFreeAgain) {
  const auto reservation = reserve(alice_, "a@v1").value();
  const auto entry = bob_.version(world_.context, ref_of("a@v1")).value();
  ASSERT_TRUE(bob_.abort(world_.context, Reservation::of(entry), "alice is dead").ok());
  EXPECT_TRUE(bob_.abort(world_.context, Reservation::of(entry), "again").ok());
  const auto late = alice_.commit(world_.context, reservation, facts_of("a"));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), StatusCode::kConflict);
  EXPECT_NE(late.error().message().find("aborted at 2026-01-01T00:00:00.000Z by bob@node7, process "
                                        "4711 (alice is dead)"),
            std::string::npos);
  const auto second = reserve(bob_, "a@v1").value();
  EXPECT_EQ(second.number, 3U);
  // The dead one comes back once more: its reservation is not the one that is open now.
  EXPECT_FALSE(alice_.commit(world_.context, reservation, facts_of("a")));
  EXPECT_TRUE(bob_.commit(world_.context, second, facts_of("b")));
  EXPECT_EQ(bob_.abort(world_.context, second, "late").code(), StatusCode::kConflict);
}

TEST_F(RegistryTest, AKilledPublisherFindsItsReservation) {
  const std::string nonce = world_.random.token();
  const auto first = alice_.reserve(world_.context, ref_of("a@v1"), {.nonce = nonce}).value();
  const auto again = alice_.reserve(world_.context, ref_of("a@v1"), {.nonce = nonce}).value();
  EXPECT_EQ(again.number, first.number);
  ASSERT_TRUE(alice_.commit(world_.context, again, facts_of("a")));
  // Killed after the commit, and before it knew: the facts may differ in time only.
  const auto repeated = alice_.commit(world_.context, first, facts_of("a"));
  ASSERT_TRUE(repeated.has_value()) << repeated.error().to_string();
  EXPECT_EQ(alice_.history(world_.context, ref_of("a@v1")).value().size(), 2U);
}

TEST_F(RegistryTest, ANonceOfTheCallerHasTheFormOfOne) {
  for (const char* nonce : {"x", "00112233445566778899AABBCCDDEEFF"}) {
    EXPECT_EQ(alice_.reserve(world_.context, ref_of("a@v1"), {.nonce = nonce}).error().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(RegistryTest, ABurnedNameIsNeverUsedAgain) {
  world_.publish("a@v1");
  EXPECT_EQ(reserving("a@v1"), StatusCode::kConflict);
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), "old"));
  EXPECT_EQ(reserving("a@v1"), StatusCode::kConflict);
  ASSERT_TRUE(alice_.purge(world_.context, ref_of("a@v1"), true));
  EXPECT_EQ(reserving("a@v1"), StatusCode::kConflict);
  EXPECT_EQ(alice_.restore(world_.context, ref_of("a@v1")).error().code(), StatusCode::kConflict);
  EXPECT_EQ(reserving("a@v2"), StatusCode::kOk);
}

TEST_F(RegistryTest, ARemovedVersionIsRestorableForItsRetention) {
  world_.publish("a@v1");
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), "old", days(7)));
  const auto gone = alice_.resolve(world_.context, ref_of("a@v1"));
  EXPECT_EQ(gone.error().code(), StatusCode::kNotFound);
  EXPECT_NE(gone.error().message().find("until 2026-01-08T00:00:00.000Z"), std::string::npos);
  world_.clock.advance(days(7) - hours(1));
  EXPECT_EQ(alice_.purge(world_.context, ref_of("a@v1")).error().code(), StatusCode::kConflict);
  ASSERT_TRUE(alice_.restore(world_.context, ref_of("a@v1")));
  EXPECT_TRUE(alice_.resolve(world_.context, ref_of("a@v1")));
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), "old", days(7)));
  world_.clock.advance(days(7));
  ASSERT_TRUE(alice_.purge(world_.context, ref_of("a@v1")));
  EXPECT_EQ(state("a@v1"), VersionState::kPurged);
  EXPECT_EQ(alice_.version(world_.context, ref_of("a@v1")).value().facts->layout,
            facts_of("a@v1").layout);
}

TEST_F(RegistryTest, OnlyPublishedVersionsAreChanged) {
  for (const char* ref : {"a@none", "a@reserved"}) {
    if (std::string_view(ref) == "a@reserved") {
      ASSERT_TRUE(reserve(alice_, ref));
    }
    EXPECT_EQ(alice_.remove(world_.context, ref_of(ref), "").error().code(), StatusCode::kNotFound);
    EXPECT_EQ(alice_.annotate(world_.context, ref_of(ref), {}).error().code(),
              StatusCode::kNotFound);
  }
  world_.publish("a@v1");
  EXPECT_EQ(alice_.purge(world_.context, ref_of("a@v1"), true).error().code(),
            StatusCode::kConflict);
  EXPECT_EQ(alice_.restore(world_.context, ref_of("a@v1")).error().code(), StatusCode::kConflict);
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), ""));
  EXPECT_EQ(alice_.remove(world_.context, ref_of("a@v1"), "").error().code(),
            StatusCode::kConflict);
  EXPECT_EQ(alice_.annotate(world_.context, ref_of("a@v1"), {}).error().code(),
            StatusCode::kConflict);
  for (const Duration wrong : {Duration(-1), kRetentionMax + Duration(1)}) {
    EXPECT_EQ(alice_.remove(world_.context, ref_of("a@v1"), "", wrong).error().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_F(RegistryTest, AnnotationsChangeWhatTheyName) {
  world_.publish("a@v1");
  ASSERT_TRUE(alice_.annotate(world_.context, ref_of("a@v1"),
                              {.labels = {{"tier", "gold"}, {"name", std::nullopt}}}));
  ASSERT_TRUE(bob_.annotate(world_.context, ref_of("a@v1"), {.notes = "new", .sample_count = 9}));
  const VersionFacts facts = *alice_.version(world_.context, ref_of("a@v1")).value().facts;
  EXPECT_EQ(facts.annotation.notes, "new");
  EXPECT_EQ(facts.annotation.labels, (std::map<std::string, std::string>{{"tier", "gold"}}));
  EXPECT_EQ(facts.sample_count, 9U);
  EXPECT_EQ(facts.publisher.user, "alice");
  EXPECT_EQ(alice_.annotate(world_.context, ref_of("a@v1"), {.notes = "\xFF"}).error().code(),
            StatusCode::kInvalidArgument);
}

TEST_F(RegistryTest, ARelayoutKeepsTheContent) {
  world_.publish("a@v1");
  const VersionFacts before = facts_of("a@v1");
  const VersionLayout to = facts_of("elsewhere").layout;
  const VersionEntry begun = alice_.begin_repack(world_.context, ref_of("a@v1"), "test").value();
  EXPECT_TRUE(begun.readable());
  EXPECT_EQ(begun.facts->layout, before.layout);
  EXPECT_EQ(begun.open_work().nonce, begun.nonce);
  EXPECT_EQ(bob_.begin_repack(world_.context, ref_of("a@v1"), "test").error().code(),
            StatusCode::kConflict);
  // What others change meanwhile does not matter.
  ASSERT_TRUE(bob_.annotate(world_.context, ref_of("a@v1"), {.notes = "new"}));
  ASSERT_EQ(bob_.open_reservations(world_.context).value().size(), 1U);
  ASSERT_TRUE(alice_.relayout(world_.context, ref_of("a@v1"), begun.nonce, to));
  const VersionFacts after = *alice_.version(world_.context, ref_of("a@v1")).value().facts;
  EXPECT_EQ(after.layout, to);
  EXPECT_EQ(after.content_digest, before.content_digest);
  EXPECT_EQ(after.annotation.notes, "new");
  EXPECT_EQ(after.repacked->nonce, begun.nonce);
  EXPECT_FALSE(after.repacking);
  EXPECT_TRUE(bob_.open_reservations(world_.context).value().empty());
  EXPECT_EQ(alice_.relayout(world_.context, ref_of("a@v1"), begun.nonce, to).error().code(),
            StatusCode::kConflict);
}

// Its objects may be deleted from then on.
TEST_F(RegistryTest, ARepackThatWasGivenUpNeverBecomesALayout) {
  world_.publish("a@v1");
  const VersionLayout to = facts_of("elsewhere").layout;
  const auto begin = [&] {
    return alice_.begin_repack(world_.context, ref_of("a@v1"), "test").value().nonce;
  };
  const auto relayout = [&](const std::string& nonce) {
    return alice_.relayout(world_.context, ref_of("a@v1"), nonce, to).error().code();
  };
  const std::string aborted = begin();
  ASSERT_TRUE(bob_.abort_repack(world_.context, ref_of("a@v1"), aborted, "test").ok());
  EXPECT_EQ(relayout(aborted), StatusCode::kConflict);
  const std::string removed = begin();
  EXPECT_EQ(relayout(aborted), StatusCode::kConflict);
  ASSERT_TRUE(bob_.remove(world_.context, ref_of("a@v1"), "test"));
  EXPECT_EQ(relayout(removed), StatusCode::kConflict);
  ASSERT_TRUE(bob_.restore(world_.context, ref_of("a@v1")));
  EXPECT_EQ(relayout(removed), StatusCode::kConflict);
  EXPECT_TRUE(bob_.abort_repack(world_.context, ref_of("a@v1"), removed, "test").ok());
  EXPECT_EQ(alice_.version(world_.context, ref_of("a@v1")).value().facts->layout,
            facts_of("a@v1").layout);
}

TEST_F(RegistryTest, NoDatasetIsTheBeginningOfAnother) {
  world_.publish("a/b@v1");
  EXPECT_EQ(reserving("a@v1"), StatusCode::kConflict);
  EXPECT_EQ(reserving("a/b/c@v1"), StatusCode::kConflict);
  EXPECT_EQ(reserving("a/b/c/d@v1"), StatusCode::kConflict);
  for (const char* ref : {"a/bc@v1", "a/b-c@v1", "a/c@v1", "ab@v1", "b@v1", "a/b@v2", "a.b@v1"})
    EXPECT_EQ(reserving(ref), StatusCode::kOk) << ref;
  const auto refused = reserve(bob_, "a@v1");
  EXPECT_NE(refused.error().message().find("'a/b' exists, so 'a' cannot be a dataset"),
            std::string::npos);
  EXPECT_EQ(alice_.version(world_.context, ref_of("a@v1")).error().code(), StatusCode::kNotFound)
      << "a refusal that could be foreseen leaves no trace";
}

TEST_F(RegistryTest, AnAbortedDatasetIsInNobodysWay) {
  const auto reservation = reserve(alice_, "a/b@v1").value();
  EXPECT_EQ(reserving("a@v1"), StatusCode::kConflict);
  ASSERT_TRUE(alice_.abort(world_.context, reservation, "test").ok());
  EXPECT_EQ(reserving("a@v1"), StatusCode::kOk);
  EXPECT_EQ(reserving("a/b/c@v1"), StatusCode::kOk);
}

TEST_F(RegistryTest, ListsDatasetsWithoutReadingAny) {
  for (const char* ref : {"b@v1", "a/x@v1", "a/y@v1", "a/y@v2"})
    world_.publish(ref);
  world_.write(".millrace/datasets/not a name/versions/v1/00000001.json", "x");
  world_.recording->clear();
  std::vector<std::string> names;
  const auto datasets = alice_.datasets(world_.context).value();
  for (const DatasetName& name : datasets)
    names.push_back(name.text());
  EXPECT_EQ(names, (std::vector<std::string>{"a/x", "a/y", "b"}));
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(), 1U);
}

TEST_F(RegistryTest, ListsVersionsWithOneGetEach) {
  for (const char* ref : {"a@v1", "a@v2", "a@v3", "b@v1"})
    world_.publish(ref);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(alice_.annotate(world_.context, ref_of("a@v2"), {.notes = std::to_string(i)}));
  }
  world_.recording->clear();
  const auto versions = alice_.versions(world_.context, dataset_of("a")).value();
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), 3U);
  EXPECT_EQ(world_.recording->count(), 4U);
  ASSERT_EQ(versions.size(), 3U);
  EXPECT_EQ(versions[1].entry->facts->annotation.notes, "49");
  EXPECT_EQ(alice_.every_version(world_.context).value().size(), 4U);
}

TEST_F(RegistryTest, OneVersionTakesAListAndAGet) {
  world_.publish("a@v1");
  world_.recording->clear();
  ASSERT_TRUE(alice_.resolve(world_.context, ref_of("a@v1")));
  EXPECT_EQ(world_.recording->count(), 2U);
}

TEST_F(RegistryTest, ACommitIsOnePut) {
  const auto reservation = reserve(alice_, "a@v1").value();
  world_.recording->clear();
  ASSERT_TRUE(alice_.commit(world_.context, reservation, facts_of("a")));
  EXPECT_EQ(world_.recording->count(), 1U);
}

TEST_F(RegistryTest, OpenReservationsAreFoundWithoutReadingWhatIsPublished) {
  for (int i = 0; i < 20; ++i)
    world_.publish("a@v" + std::to_string(i));
  ASSERT_TRUE(reserve(bob_, "b@v1"));
  const auto aborted = reserve(bob_, "c@v1").value();
  ASSERT_TRUE(bob_.abort(world_.context, aborted, "test").ok());
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v3"), "odd number"));
  world_.recording->clear();
  const auto open = alice_.open_reservations(world_.context).value();
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].ref, ref_of("b@v1"));
  EXPECT_EQ(open[0].who.user, "bob");
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), 2U);
}

TEST_F(RegistryTest, ADamagedRecordDoesNotHideTheOthers) {
  for (const char* ref : {"a@v1", "a@v2"})
    world_.publish(ref);
  const std::string key = version_log_prefix(ref_of("a@v1")) + "00000002.json";
  world_.write(key, "rubbish");
  const auto versions = alice_.versions(world_.context, dataset_of("a")).value();
  ASSERT_EQ(versions.size(), 2U);
  ASSERT_FALSE(versions[0].entry);
  EXPECT_EQ(versions[0].entry.error().code(), StatusCode::kCorruption);
  EXPECT_NE(versions[0].entry.error().message().find(key), std::string::npos);
  EXPECT_TRUE(versions[1].entry);
  EXPECT_EQ(alice_.resolve(world_.context, ref_of("a@v1")).error().code(), StatusCode::kCorruption);
  EXPECT_EQ(reserving("a@v1"), StatusCode::kCorruption);
}

TEST_F(RegistryTest, ASingleWriterWorksWithoutConditions) {
  MemoryObjectStore plain(world_.clock, inline_executor(), {.refuse_conditions = true});
  RegistryAccess access{plain, world_.clock, world_.random, writer_of("alice")};
  EXPECT_EQ(reserve(Registry(access), "a@v1").error().code(), StatusCode::kUnsupported);
  access.single_writer = true;
  const Registry registry(access);
  const auto reservation = reserve(registry, "a@v1").value();
  EXPECT_EQ(reserve(registry, "a@v1").error().code(), StatusCode::kConflict);
  EXPECT_TRUE(registry.commit(world_.context, reservation, facts_of("a")));
  EXPECT_TRUE(registry.aliases().set(world_.context, dataset_of("a"), alias_of("current"),
                                     version_of("v1")));
}

TEST_F(RegistryTest, ALiveRunKeepsAPurgeOff) {
  world_.publish("a@v1");
  const RunDescription description{
      .name = "exp42",
      .uses = {{.ref = ref_of("a@v1"), .content_digest = facts_of("a@v1").content_digest}}};
  auto recording = bob_.runs().start(world_.context, description).value();
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), "old", hours(0)));
  const auto refused = alice_.purge(world_.context, ref_of("a@v1"), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kConflict);
  EXPECT_NE(refused.error().message().find("in use by the run 'exp42'"), std::string::npos);
  ASSERT_TRUE(bob_.runs().finish(world_.context, recording, 0).ok());
  EXPECT_TRUE(alice_.purge(world_.context, ref_of("a@v1")));
}

TEST_F(RegistryTest, ARunOfTheSameContentUnderAnotherNameKeepsNothingOff) {
  world_.publish("a@v1");
  const RunDescription description{
      .name = "exp42",
      .uses = {{.ref = ref_of("b@v1"), .content_digest = facts_of("a@v1").content_digest}}};
  ASSERT_TRUE(bob_.runs().start(world_.context, description));
  ASSERT_TRUE(alice_.remove(world_.context, ref_of("a@v1"), "old", hours(0)));
  EXPECT_TRUE(alice_.purge(world_.context, ref_of("a@v1")));
}

// What lies below its nonce may be gone.
TEST(RegistryReservations, AnAbortedOneDoesNotComeBack) {
  RegistryWorld world;
  const Registry registry = world.registry();
  const std::string nonce = world.random.token();
  const auto first = registry.reserve(world.context, ref_of("d@v1"), {.nonce = nonce});
  ASSERT_TRUE(first);
  ASSERT_TRUE(registry.reserve(world.context, ref_of("d@v1"), {.nonce = nonce})) << "it is open";
  ASSERT_TRUE(registry.abort(world.context, *first, "too old").ok());
  const auto again = registry.reserve(world.context, ref_of("d@v1"), {.nonce = nonce});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), StatusCode::kConflict);
  EXPECT_TRUE(registry.reserve(world.context, ref_of("d@v1"), {}));
}

}  // namespace

}  // namespace millrace
