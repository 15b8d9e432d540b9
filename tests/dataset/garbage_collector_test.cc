#include "dataset/garbage_collector.h"

#include <algorithm>
#include <array>
#include <random>

#include <gmock/gmock.h>

#include "dataset/append_log_listing.h"
#include "dataset/reserved_keys.h"
#include "dataset/sample_index_store.h"
#include "tests/dataset/garbage_world.h"

namespace millrace {
namespace {

constexpr std::uint64_t kScheduleSeeds = 120;
constexpr Duration kNoRetention = Duration::zero();

std::size_t keys_below(const std::set<std::string>& keys, const std::string& prefix) {
  return static_cast<std::size_t>(
      std::ranges::count_if(keys, [&](const std::string& key) { return key.starts_with(prefix); }));
}

TEST(GarbageCollector, DeletesWhatAPurgedVersionLeavesBehind) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a/b@v1"), std::nullopt).ok());
  ASSERT_TRUE(world.publisher().publish(ref_of("a/c@v1"), std::nullopt).ok());
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a/b@v1"), "test"));
  // Restorable: nothing happens.
  const auto early = world.collect();
  ASSERT_TRUE(early.has_value()) << early.error().to_string();
  EXPECT_TRUE(early->purged.empty());
  EXPECT_EQ(early->objects, 0U);

  world.clock.advance(kRetentionDefault + std::chrono::seconds(1));
  const auto before = world.stored();
  const auto report = world.collect();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_EQ(report->purged, std::vector{ref_of("a/b@v1")});
  EXPECT_EQ(report->objects, keys_below(before, "a/b/"));
  EXPECT_EQ(report->manifests, 1U);
  EXPECT_GT(report->bytes, 0U);
  EXPECT_EQ(world.stored(), world.check_versions());
  EXPECT_EQ(world.collect()->objects, 0U);
}

TEST(GarbageCollector, DeletesIndexesOfContentThatNobodyHas) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const VersionEntry kept = world.registry().version(world.context, ref_of("a@v1")).value();
  const ObjectKey live = sample_index_key(kept.facts->content_digest);
  const ObjectKey dead = sample_index_key(digest_of("gone"));
  const ObjectKey foreign(std::string(kIndexesPrefix) + "not a digest/webdataset");
  const ObjectKey probe(std::string(kProbeFolder) + "/probe-1/x");
  for (const ObjectKey& key : {live, dead, foreign, probe})
    ASSERT_TRUE(world.memory->put(world.context, key, Slice::copy_of("x"), {}));
  const auto has = [&](const ObjectKey& key) {
    return world.memory->head(world.context, key).has_value();
  };
  const Reservation open = world.registry().reserve(world.context, ref_of("b@v1"), {}).value();
  ASSERT_TRUE(world.collect());
  EXPECT_TRUE(has(dead)) << "somebody may have found it";
  ASSERT_TRUE(world.registry().abort(world.context, open, "test").ok());
  EXPECT_EQ(world.collect()->others, 1U);
  EXPECT_TRUE(has(live) && has(foreign) && has(probe));
  EXPECT_FALSE(has(dead));
  world.clock.advance(std::chrono::hours(25));
  EXPECT_EQ(world.collect()->others, 1U);
  EXPECT_FALSE(has(probe));
}

TEST(GarbageCollector, ADryRunChangesNothingAndSaysWhatWouldGo) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  const Reservation open = world.registry().reserve(world.context, ref_of("a@v2"), {}).value();
  ASSERT_TRUE(world.publisher().store(open, std::nullopt).has_value());
  world.clock.advance(std::chrono::days(8));
  const auto before = world.stored();
  std::set<std::string> would;
  const auto deleted = [&](const std::string& key, std::uint64_t) { would.insert(key); };
  const auto dry = world.collect({.dry_run = true, .deleted = deleted});
  ASSERT_TRUE(dry.has_value()) << dry.error().to_string();
  EXPECT_EQ(dry->purged.size(), 1U);
  EXPECT_EQ(dry->aborted.size(), 1U);
  EXPECT_EQ(would, before);
  EXPECT_EQ(world.stored(), before);
  EXPECT_EQ(world.registry().version(world.context, ref_of("a@v1"))->state(),
            VersionState::kRemoved);

  std::set<std::string> gone;
  const auto real =
      world.collect({.deleted = [&](const std::string& key, std::uint64_t) { gone.insert(key); }});
  ASSERT_TRUE(real.has_value()) << real.error().to_string();
  EXPECT_EQ(gone, would);
  EXPECT_TRUE(world.stored().empty());
}

TEST(GarbageCollector, KeepsObjectsOfPurgedVersionsWhileAReservationIsOpen) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const Reservation open = world.registry().reserve(world.context, ref_of("b@v1"), {}).value();
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  const auto before = world.stored();
  // Young, so it is waited for, and then lets everything be.
  const auto report = world.collect({.wait = std::chrono::minutes(1)});
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  ASSERT_EQ(report->open.size(), 1U);
  EXPECT_EQ(report->open[0].nonce, open.nonce);
  EXPECT_EQ(world.stored(), before);

  world.clock.advance(std::chrono::days(8));
  const auto later = world.collect();
  ASSERT_EQ(later->aborted.size(), 1U);
  EXPECT_TRUE(world.stored().empty());
  EXPECT_FALSE(world.publisher().publish(open, std::nullopt).ok());
  // What the late publisher stored is garbage, too.
  EXPECT_FALSE(world.stored().empty());
  ASSERT_TRUE(world.collect().has_value());
  EXPECT_TRUE(world.stored().empty());
}

TEST(GarbageCollector, DeletesWhatAnEarlierLifeOfAPublishLeftBehind) {
  for (const bool resumed : {false, true}) {
    SCOPED_TRACE(resumed);
    GarbageWorld world;
    const Reservation own = world.registry().reserve(world.context, ref_of("a@v1"), {}).value();
    FakePublisher publisher = world.publisher();
    VersionFacts facts = facts_of("a@v1");
    facts.layout = publisher.store(own, std::nullopt).value();
    facts.resumed = resumed;
    const ObjectKey stray(reservation_prefix(own.ref, own.nonce) + "packs/00000007.tar");
    ASSERT_TRUE(world.memory->put(world.context, stray, Slice::copy_of("x"), {}));
    ASSERT_TRUE(world.registry().commit(world.context, own, facts));
    const auto before = world.stored();

    // Somebody at work may have read a version that is purged by now.
    const Reservation open = world.registry().reserve(world.context, ref_of("b@v1"), {}).value();
    ASSERT_TRUE(world.collect().has_value());
    EXPECT_EQ(world.stored(), before);
    ASSERT_TRUE(world.registry().abort(world.context, open, "test").ok());
    const auto report = world.collect();
    ASSERT_TRUE(report.has_value()) << report.error().to_string();
    EXPECT_EQ(report->objects, resumed ? 1U : 0U);
    EXPECT_EQ(world.stored(), resumed ? world.check_versions() : before);
  }
}

TEST(GarbageCollector, WaitsForAReservationToEnd) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const Reservation open = world.registry().reserve(world.context, ref_of("a@v2"), {}).value();
  const auto layout = world.publisher().store(open, ref_of("a@v1"));
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  VersionFacts facts = facts_of("x");
  facts.layout = layout.value();
  const auto timer = world.clock.schedule(
      world.clock.now() + std::chrono::seconds(30), inline_executor(),
      [&] { EXPECT_TRUE(world.registry().commit(world.context, open, facts)); });
  const auto report = world.collect({.wait = std::chrono::hours(1)});
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_TRUE(report->open.empty());
  const auto needed = world.check_versions();
  for (const std::string& key : world.stored()) {
    EXPECT_TRUE(needed.contains(key)) << key;
  }
}

TEST(GarbageCollector, TouchesNothingThatIsNotOurs) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const std::string stranger(32, '7');
  const std::vector<std::string> foreign = {"a/v1/notes.txt",
                                            "a/v1/" + stranger + "/files/0",
                                            "a/v2/" + stranger + "/files/0",
                                            "other/v1/x",
                                            ".millrace/manifests/readme",
                                            ".millrace/runs/x",
                                            "a/" + stranger + "/x",
                                            ".millrace/manifests/" + std::string(64, 'a'),
                                            ".millrace/manifests/a/v1/" + stranger + "/x",
                                            ".millrace/manifests/a/v1/x"};
  for (const std::string& key : foreign)
    world.write(key, "x");
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  const auto report = world.collect();
  ASSERT_TRUE(report.has_value()) << report.error().to_string();
  EXPECT_GT(report->objects, 0U);
  EXPECT_EQ(world.stored(), std::set<std::string>(foreign.begin(), foreign.end()));
}

// Somebody registered objects that lie below a reservation of ours.
TEST(GarbageCollector, KeepsObjectsThatARegisteredVersionNames) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const std::string nonce =
      world.registry().version(world.context, ref_of("a@v1"))->facts->reservation;
  const std::string prefix = reservation_prefix(ref_of("a@v1"), nonce);
  const std::string path = world.folder.file("registered");
  const auto builder = ManifestBuilder::create({.path = path, .prefix = prefix}).value();
  const ObjectIdentity identity(std::string(32, 'a'));
  ASSERT_TRUE(
      builder
          ->add({.path = "files/0",
                 .size = 5,
                 .hash = ContentHash::of_identity(identity),
                 .extents = {{.object = kOwnObject, .stored_bytes = 5, .logical_bytes = 5}}})
          .ok());
  ASSERT_TRUE(builder->finish().has_value());
  ManifestStore manifests(*world.memory, world.folder.file("manifests"));
  VersionFacts facts = facts_of("r");
  facts.origin = VersionOrigin::kRegistered;
  const Registry registry = world.registry();
  const auto reservation = registry.reserve(world.context, ref_of("r@v1"), {});
  facts.layout = manifests.put(world.context, path, reservation->ref, reservation->nonce).value();
  ASSERT_TRUE(registry.commit(world.context, *reservation, facts));
  ASSERT_TRUE(registry.remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  ASSERT_TRUE(world.collect().has_value());
  EXPECT_TRUE(world.stored().contains(prefix + "files/0"));
  // It names nothing of ours. Once it is gone its manifest is garbage, too.
  ASSERT_TRUE(registry.remove(world.context, ref_of("r@v1"), "test", kNoRetention));
  ASSERT_TRUE(world.collect().has_value());
  EXPECT_TRUE(world.stored().empty());
}

TEST(GarbageCollector, DeletesNothingWhenAManifestCannotBeRead) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v2"), ref_of("a@v1")).ok());
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  const auto entry = world.registry().version(world.context, ref_of("a@v2"));
  world.write(entry->facts->layout.manifest_key, "damaged");
  const auto before = world.stored();
  const auto failed = world.collect();
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().message().find("a@v2"), std::string::npos);
  EXPECT_EQ(world.stored(), before);
}

TEST(GarbageCollector, RefusesWhileALogHasAGap) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v2"), ref_of("a@v1")).ok());
  ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  const std::array record = {
      ObjectKey(version_log_prefix(ref_of("a@v2")) + log_record_file_name(1))};
  ASSERT_TRUE(world.memory->remove(world.context, record).ok());
  const auto listed = world.registry().versions(world.context, dataset_of("a")).value();
  ASSERT_EQ(listed.size(), 2U);
  EXPECT_TRUE(listed[0].entry.has_value());
  EXPECT_EQ(listed[1].entry.error().code(), StatusCode::kCorruption);
  const auto before = world.stored();
  const auto failed = world.collect();
  ASSERT_FALSE(failed.has_value());
  EXPECT_NE(failed.error().message().find(record[0].value()), std::string::npos);
  EXPECT_EQ(world.stored(), before);
}

// As a store might whose lists are not to be relied on.
TEST(GarbageCollector, DeletesNothingWhenAVersionIsNoLongerListed) {
  std::uint64_t refused = 0;
  for (std::uint64_t moment = 1; moment <= 20; ++moment) {
    SCOPED_TRACE(moment);
    GarbageWorld world;
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v2"), ref_of("a@v1")).ok());
    ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
    const auto before = world.stored();
    const std::string log = version_log_prefix(ref_of("a@v2"));
    const std::array records = {ObjectKey(log + log_record_file_name(1)),
                                ObjectKey(log + log_record_file_name(2))};
    std::uint64_t calls = 0;
    GuardedObjectStore store(world.memory, [&]() -> Status {
      return ++calls == moment ? world.memory->remove(world.context, records) : Status();
    });
    GarbageOptions options;
    options.manifest_directory = world.folder.file("gc");
    const auto report =
        GarbageCollector({store, world.clock, world.random, writer_of("gc")}, options)
            .run(world.context);
    if (report || report.error() != StatusCode::kUnavailable) continue;
    ++refused;
    EXPECT_THAT(report.error().message(), ::testing::StartsWith("a@v2 was listed"));
    EXPECT_EQ(world.stored(), before);
  }
  EXPECT_GT(refused, 0U);
}

// Whenever another collection runs from its begin to its end inside this one: this one ends well,
// or says that it was overtaken.
TEST(GarbageCollector, SaysThatAnotherOneHasOvertakenIt) {
  std::uint64_t overtaken = 0;
  for (std::uint64_t moment = 1; moment <= 40; ++moment) {
    SCOPED_TRACE(moment);
    GarbageWorld world;
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
    ASSERT_TRUE(world.publisher(2).publish(ref_of("b@v1"), std::nullopt).ok());
    std::uint64_t calls = 0;
    GuardedObjectStore store(world.memory, [&]() -> Status {
      if (++calls != moment) return {};
      EXPECT_TRUE(world.registry().remove(world.context, ref_of("a@v1"), "test", kNoRetention));
      EXPECT_TRUE(world.collect());
      return {};
    });
    GarbageOptions options;
    options.manifest_directory = world.folder.file("outer");
    const auto outer =
        GarbageCollector({store, world.clock, world.random, writer_of("late")}, options)
            .run(world.context);
    if (!outer) {
      ++overtaken;
      EXPECT_EQ(outer.error().code(), StatusCode::kConflict);
      EXPECT_EQ(outer.error().message(),
                "another collection, by gc@node7, process 4711, has purged a@v1 since this one "
                "began, and deletes what it had: begin again");
    }
    world.check_versions();
  }
  EXPECT_GT(overtaken, 0U);
}

TEST(GarbageCollector, LeavesAVersionThatALiveRunUses) {
  GarbageWorld world;
  ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
  const Registry registry = world.registry();
  const auto entry = registry.version(world.context, ref_of("a@v1"));
  const auto run = registry.runs().start(
      world.context,
      {.name = "exp",
       .uses = {{.ref = ref_of("a@v1"), .content_digest = entry->facts->content_digest}}});
  ASSERT_TRUE(run.has_value()) << run.error().to_string();
  ASSERT_TRUE(registry.remove(world.context, ref_of("a@v1"), "test", kNoRetention));
  for (const bool dry_run : {true, false}) {
    const auto report = world.collect({.dry_run = dry_run});
    ASSERT_TRUE(report.has_value()) << report.error().to_string();
    ASSERT_EQ(report->not_purged.size(), 1U);
    EXPECT_NE(report->not_purged[0].message().find("exp"), std::string::npos);
    EXPECT_EQ(report->objects, 0U);
  }
}

TEST(GarbageCollector, FailsAtAnyRequestAndTheNextOneDoesTheRest) {
  for (std::uint64_t fail_at = 1;; ++fail_at) {
    SCOPED_TRACE(fail_at);
    ASSERT_LT(fail_at, 200U);
    GarbageWorld world;
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v1"), std::nullopt).ok());
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v2"), ref_of("a@v1")).ok());
    ASSERT_TRUE(world.publisher().publish(ref_of("a@v3"), ref_of("a@v2")).ok());
    ASSERT_TRUE(world.registry().remove(world.context, ref_of("a@v2"), "test", kNoRetention));
    std::uint64_t calls = 0;
    GuardedObjectStore store(world.memory, [&]() -> Status {
      return ++calls >= fail_at ? Status(StatusCode::kUnavailable, "killed") : Status();
    });
    GarbageOptions options;
    options.manifest_directory = world.folder.file("gc");
    const bool done = GarbageCollector({store, world.clock, world.random, writer_of("gc")}, options)
                          .run(world.context)
                          .has_value();
    world.check_versions();
    ASSERT_TRUE(world.collect().has_value());
    const auto needed = world.check_versions();
    for (const std::string& key : world.stored()) {
      EXPECT_TRUE(needed.contains(key)) << key;
    }
    if (done) break;
  }
}

// However many passes there are, every key is looked at in one of them.
TEST(AliveKeys, SharesAllKeysOutBetweenPasses) {
  EXPECT_EQ(AliveKeys::passes_for(0), 1U);
  EXPECT_EQ(AliveKeys::passes_for(100'000'000), 13U);
  for (const std::uint64_t passes : {1U, 2U, 7U}) {
    std::map<std::string, int> dead;
    std::size_t alive = 0;
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
      AliveKeys keys(pass, passes);
      for (int n = 0; n < 1000; ++n) {
        keys.add("alive " + std::to_string(n));
        keys.add("alive " + std::to_string(n));
      }
      keys.seal();
      alive += keys.count();
      for (int n = 0; n < 1000; ++n) {
        EXPECT_FALSE(keys.is_dead("alive " + std::to_string(n)));
        const std::string key = "dead " + std::to_string(n);
        dead[key] += keys.is_dead(key) ? 1 : 0;
      }
    }
    EXPECT_EQ(alive, 1000U);
    for (const auto& [key, times] : dead)
      EXPECT_EQ(times, 1) << key;
  }
}

// One collection during which all else happens, each thing before a request that the seed chooses:
// a publisher reserves, reads its base, stores; the base is removed; another collection runs and
// purges it; the publisher commits.
TEST(GarbageCollector, AnythingMayHappenBetweenTwoOfItsRequests) {
  for (std::uint64_t seed = 1; seed <= kScheduleSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    // All but the commit happen at one moment, and each moment has its turn.
    const bool burst = seed % 2 == 0;
    GarbageWorld world(seed);
    const Registry registry = world.registry();
    ASSERT_TRUE(world.publisher(seed).publish(ref_of("a@v1"), std::nullopt).ok());
    ASSERT_TRUE(world.publisher(seed + 1).publish(ref_of("a@v2"), ref_of("a@v1")).ok());
    const auto remove = [&](const char* ref) {
      (void)registry.remove(world.context, ref_of(ref), "test", kNoRetention);
    };
    if (burst || random() % 2 == 0) remove("a@v1");
    if (random() % 4 == 0) {
      ASSERT_TRUE(world.collect().has_value());
    }

    std::optional<Reservation> reservation;
    std::optional<VersionLayout> layout;
    const VersionRef base = ref_of(!burst && random() % 3 == 0 ? "a@v1" : "a@v2");
    std::vector<std::function<void()>> events = {
        [&] {
          if (auto got = registry.reserve(world.context, ref_of("a@v3"), {})) reservation = *got;
        },
        [&] {
          if (!reservation) return;
          if (auto got = world.publisher(seed + 2).store(*reservation, base)) layout = *got;
        },
        [&] { remove(base.text().c_str()); },
        [&] {
          (void)world.collect(
              {.abort_after = random() % 4 == 0 ? Duration::zero() : std::chrono::hours(1)});
        },
        [&] {
          if (!reservation || !layout) return;
          VersionFacts facts = facts_of("v3");
          facts.layout = *layout;
          (void)registry.commit(world.context, *reservation, facts);
        }};
    std::vector<std::uint64_t> moments;
    for (std::size_t n = 0; n < events.size(); ++n)
      moments.push_back(1 + random() % 50);
    if (burst) std::fill(moments.begin(), moments.end() - 1, 1 + seed / 2 % 10);
    std::ranges::sort(moments);

    std::uint64_t calls = 0;
    std::size_t next = 0;
    GuardedObjectStore store(world.memory, [&]() -> Status {
      ++calls;
      while (next < events.size() && moments[next] <= calls)
        events[next++]();
      return {};
    });
    GarbageOptions options;
    options.manifest_directory = world.folder.file("outer");
    options.abort_after = std::chrono::hours(1);
    (void)GarbageCollector({store, world.clock, world.random, writer_of("gc")}, options)
        .run(world.context);
    while (next < events.size())
      events[next++]();
    world.check_versions();
  }
}

}  // namespace
}  // namespace millrace
