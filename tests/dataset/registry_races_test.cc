// Several registries on one store, under faults: answers that are lost after the write took place,
// failures, throttles, delays, and participants that are gone from some request on. Once as
// interleavings that a seed decides, once as threads that run freely.

#include <atomic>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "objectstore/faulty_object_store.h"
#include "tests/dataset/registry_turns.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

#if defined(MILLRACE_SANITIZED)
constexpr std::uint64_t kRaceSeeds = 40;
constexpr std::uint64_t kFreeSeeds = 10;
#else
constexpr std::uint64_t kRaceSeeds = 150;
constexpr std::uint64_t kFreeSeeds = 40;
#endif

FaultPlan race_faults(std::uint64_t seed, double rate) {
  std::mt19937_64 random(seed);
  // A third of them are killed: from some request on nothing reaches the store any more.
  const std::uint64_t last = random() % 3 == 0 ? 1 + random() % 25 : UINT64_MAX;
  FaultPlan faults = random_faults(
      seed, {{rate / 2, {.kind = Fault::Kind::kFailAfter}},
             {rate / 8, {.kind = Fault::Kind::kFailBefore}},
             {rate / 8, {.kind = Fault::Kind::kThrottle}},
             {rate / 8, {.kind = Fault::Kind::kFailAfter, .code = StatusCode::kConflict}},
             {rate / 8, {.kind = Fault::Kind::kDelay, .delay = std::chrono::seconds(30)}}});
  return [faults, last](const FaultableCall& call) -> std::optional<Fault> {
    if (call.number > last) return Fault{.kind = Fault::Kind::kFailBefore};
    auto fault = faults(call);
    // Nobody moves the clock while a read is held back; the turns delay those.
    if (fault && fault->kind == Fault::Kind::kDelay && call.operation == StoreOperation::kGetRange)
      fault.reset();
    return fault;
  };
}

// One race: participants with a registry each, and what is in the store when they are done.
class Race {
 public:
  Race(std::uint64_t seed, bool turns) : seed_(seed), world_(seed), turns_(seed), by_turns_(turns) {
    random_.seed(seed);
  }

  using Body = std::function<void(const Registry&)>;
  void add(std::string user, Body body) { bodies_.emplace_back(std::move(user), std::move(body)); }

  void run() {
    std::vector<std::function<void()>> participants;
    const double rate = static_cast<double>(random_() % 4) / 10;
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      auto interrupted = std::make_shared<InterruptedObjectStore>(world_.memory, [this] {
        if (by_turns_) turns_.pass();
      });
      stores_.push_back(std::make_shared<FaultyObjectStore>(
          interrupted, race_faults(seed_ * 100 + i, rate), world_.clock, inline_executor()));
      registries_.push_back(std::make_unique<Registry>(
          RegistryAccess{*stores_[i], world_.clock, world_.random, writer_of(bodies_[i].first)}));
      participants.push_back([this, i] { bodies_[i].second(*registries_[i]); });
    }
    if (by_turns_) {
      turns_.run(std::move(participants));
      return;
    }
    std::vector<std::thread> threads;
    for (auto& participant : participants)
      threads.emplace_back(std::move(participant));
    for (std::thread& thread : threads)
      thread.join();
  }

  RegistryWorld& world() { return world_; }

 private:
  const std::uint64_t seed_;
  std::mt19937_64 random_;
  RegistryWorld world_;
  Turns turns_;
  const bool by_turns_;
  std::vector<std::pair<std::string, Body>> bodies_;
  std::vector<std::shared_ptr<FaultyObjectStore>> stores_;
  std::vector<std::unique_ptr<Registry>> registries_;
};

void for_each_race(const std::function<void(std::uint64_t seed, bool turns)>& race) {
  for (std::uint64_t seed = 1; seed <= kRaceSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("turns, seed " + std::to_string(seed));
    race(seed, true);
  }
  for (std::uint64_t seed = 1; seed <= kFreeSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("free threads, seed " + std::to_string(seed));
    race(seed, false);
  }
}

// Which record may follow which, told apart from how the registry decides it.
bool may_follow(const std::optional<VersionEvent>& before, VersionEvent after) {
  if (!before || *before == VersionEvent::kAborted) return after == VersionEvent::kReserved;
  if (*before == VersionEvent::kReserved)
    return after == VersionEvent::kPublished || after == VersionEvent::kAborted;
  if (*before == VersionEvent::kRemoved)
    return after == VersionEvent::kRestored || after == VersionEvent::kPurged;
  if (*before == VersionEvent::kPurged) return false;
  if (*before == VersionEvent::kRepacking &&
      (after == VersionEvent::kRelayout || after == VersionEvent::kRepackAborted)) {
    return true;
  }
  return after == VersionEvent::kAnnotated || after == VersionEvent::kRepacking ||
         after == VersionEvent::kRemoved;
}

std::vector<VersionEntry> lawful_history(RegistryWorld& world, const VersionRef& ref) {
  const RegistryAccess access = world.access();
  const auto history = VersionLog(access, ref).history(world.context).value();
  std::optional<VersionEvent> before;
  for (const VersionEntry& entry : history) {
    EXPECT_TRUE(may_follow(before, entry.event)) << version_event_name(entry.event);
    before = entry.event;
  }
  return history;
}

// Publishers that try again after a conflict, and a gc that aborts what it finds open.
TEST(RegistryRaces, AReservationHasOneWinnerAndSoHasItsEnd) {
  std::atomic<std::uint64_t> published = 0;
  for_each_race([&](std::uint64_t seed, bool turns) {
    Race race(seed, turns);
    const VersionRef ref = ref_of("a@v1");
    const RequestContext context = RequestContext::background();
    Mutex mutex;
    std::vector<Reservation> committed;  // That the publisher was told of.
    std::vector<Reservation> aborted;
    for (int p = 0; p < 3; ++p) {
      race.add("publisher" + std::to_string(p), [&](const Registry& registry) {
        for (int attempt = 0; attempt < 3; ++attempt) {
          const auto reservation = registry.reserve(context, ref, {});
          if (!reservation) continue;
          if (!registry.commit(context, *reservation, facts_of(reservation->nonce))) continue;
          MutexLock lock(mutex);
          committed.push_back(*reservation);
        }
      });
    }
    race.add("gc", [&](const Registry& registry) {
      for (int attempt = 0; attempt < 4; ++attempt) {
        const auto open = registry.open_reservations(context);
        if (!open) continue;
        for (const VersionEntry& entry : *open) {
          const Reservation reservation = Reservation::of(entry);
          if (!registry.abort(context, reservation, "gc").ok()) continue;
          MutexLock lock(mutex);
          aborted.push_back(reservation);
        }
      }
    });
    race.run();

    const auto history = lawful_history(race.world(), ref);
    ASSERT_LE(committed.size(), 1U);
    for (const Reservation& reservation : committed) {
      ++published;
      ASSERT_EQ(history.back().facts->reservation, reservation.nonce);
      ASSERT_EQ(history.back().facts->content_digest, facts_of(reservation.nonce).content_digest);
      ASSERT_EQ(history[reservation.number - 1].nonce, reservation.nonce);
    }
    for (const Reservation& reservation : aborted) {
      ASSERT_EQ(history.at(reservation.number).event, VersionEvent::kAborted);
      ASSERT_EQ(history[reservation.number - 1].nonce, reservation.nonce);
    }
  });
  EXPECT_GT(published, kRaceSeeds / 4) << "the races must not all end in nothing";
}

TEST(RegistryRaces, DatasetsThatExcludeEachOtherAreNeverBothPublished) {
  std::atomic<std::uint64_t> published = 0;
  for_each_race([&](std::uint64_t seed, bool turns) {
    Race race(seed, turns);
    const RequestContext context = RequestContext::background();
    for (const char* name : {"a@v1", "a/b@v1", "a/b/c@v1", "a/b@v2"}) {
      race.add(name, [&context, ref = ref_of(name), &race](const Registry& registry) {
        const std::string nonce = race.world().random.token();
        for (int attempt = 0; attempt < 3; ++attempt) {
          // With the same nonce: also a reservation whose writer died before it looked is found.
          const auto reservation = registry.reserve(context, ref, {.nonce = nonce});
          if (reservation && registry.commit(context, *reservation, facts_of(ref.text()))) return;
        }
      });
    }
    race.run();

    std::set<std::string> datasets;
    const auto every = race.world().registry().every_version(context).value();
    for (const VersionListing& listing : every) {
      lawful_history(race.world(), listing.ref);
      if (listing.entry->readable()) datasets.insert(listing.ref.dataset.text());
    }
    ASSERT_LE(datasets.size(), 1U) << *datasets.begin() << " and " << *datasets.rbegin();
    published += datasets.size();
  });
  EXPECT_GT(published, kRaceSeeds / 4);
}

TEST(RegistryRaces, NoNameIsBothVersionAndAlias) {
  std::atomic<std::uint64_t> versions = 0;
  std::atomic<std::uint64_t> aliases = 0;
  for_each_race([&](std::uint64_t seed, bool turns) {
    Race race(seed, turns);
    race.world().publish("a@v1");
    const RequestContext context = RequestContext::background();
    for (int p = 0; p < 2; ++p) {
      race.add("publisher" + std::to_string(p), [&](const Registry& registry) {
        for (int attempt = 0; attempt < 2; ++attempt) {
          const auto reservation = registry.reserve(context, ref_of("a@x"), {});
          if (reservation && registry.commit(context, *reservation, facts_of("x"))) return;
        }
      });
      race.add("setter" + std::to_string(p), [&](const Registry& registry) {
        for (int attempt = 0; attempt < 2; ++attempt) {
          if (registry.aliases().set(context, dataset_of("a"), alias_of("x"), version_of("v1")))
            return;
        }
      });
    }
    race.run();

    const Registry registry = race.world().registry();
    const auto version = registry.version(context, ref_of("a@x"));
    const auto alias = registry.aliases().get(context, dataset_of("a"), alias_of("x"));
    ASSERT_FALSE(alias.has_value() && version.has_value() && version->readable());
    versions += version.has_value() && version->readable() ? 1 : 0;
    aliases += alias.has_value() ? 1 : 0;
  });
  EXPECT_GT(versions, kRaceSeeds / 30);
  EXPECT_GT(aliases, kRaceSeeds / 30);
}

TEST(RegistryRaces, TheHistoryOfAnAliasIsOneLine) {
  for_each_race([&](std::uint64_t seed, bool turns) {
    Race race(seed, turns);
    for (const char* ref : {"a@v0", "a@v1", "a@v2"})
      race.world().publish(ref);
    const RequestContext context = RequestContext::background();
    Mutex mutex;
    std::map<std::uint64_t, std::string> told;  // Number to nonce, of the moves that succeeded.
    for (int p = 0; p < 4; ++p) {
      race.add("mover" + std::to_string(p), [&, p](const Registry& registry) {
        std::mt19937_64 random(seed * 10 + static_cast<std::uint64_t>(p));
        for (int move = 0; move < 5; ++move) {
          const VersionName target = version_of("v" + std::to_string(random() % 3));
          const auto entry =
              random() % 3 == 0
                  ? registry.aliases().rollback(context, dataset_of("a"), alias_of("x"))
                  : registry.aliases().set(context, dataset_of("a"), alias_of("x"), target);
          if (!entry) continue;
          MutexLock lock(mutex);
          const auto [there, added] = told.emplace(entry->number, entry->nonce);
          EXPECT_EQ(there->second, entry->nonce);
        }
      });
    }
    race.run();

    const auto history =
        race.world().registry().aliases().history(context, dataset_of("a"), alias_of("x"));
    if (!history) {
      ASSERT_TRUE(told.empty());
      return;
    }
    std::optional<VersionName> before;
    std::vector<VersionName> stack;
    for (const AliasEntry& entry : *history) {
      ASSERT_EQ(entry.previous, before);
      before = entry.target;
      if (entry.event == AliasEvent::kSet) stack.push_back(*entry.target);
      if (entry.event == AliasEvent::kRolledBack) {
        stack.pop_back();
        ASSERT_FALSE(stack.empty());
      }
      if (entry.target) {
        ASSERT_EQ(*entry.target, stack.back());
      }
    }
    for (const auto& [number, nonce] : told)
      ASSERT_EQ(history->at(number - 1).nonce, nonce);
  });
}

TEST(RegistryRaces, NoChangeIsLost) {
  for_each_race([&](std::uint64_t seed, bool turns) {
    Race race(seed, turns);
    race.world().publish("a@v1");
    const RequestContext context = RequestContext::background();
    Mutex mutex;
    std::set<std::string> told;
    std::size_t removals = 0;
    for (int p = 0; p < 3; ++p) {
      race.add("annotator" + std::to_string(p), [&, p](const Registry& registry) {
        for (int i = 0; i < 5; ++i) {
          const std::string label = std::to_string(p) + "." + std::to_string(i);
          AnnotationChange change;
          change.labels[label] = "x";
          if (!registry.annotate(context, ref_of("a@v1"), change)) continue;
          MutexLock lock(mutex);
          told.insert(label);
        }
      });
    }
    race.add("remover", [&](const Registry& registry) {
      for (int i = 0; i < 2; ++i) {
        const bool removed = registry.remove(context, ref_of("a@v1"), "test").has_value();
        if (removed) ++removals;
        while (!registry.restore(context, ref_of("a@v1"))) {
          const auto now = registry.version(context, ref_of("a@v1"));
          if (!now || now->readable()) break;
        }
      }
    });
    race.run();

    const auto history = lawful_history(race.world(), ref_of("a@v1"));
    for (const std::string& label : told)
      ASSERT_TRUE(history.back().facts->annotation.labels.contains(label)) << label;
    std::size_t recorded = 0;
    for (const VersionEntry& entry : history)
      recorded += entry.event == VersionEvent::kRemoved ? 1 : 0;
    ASSERT_GE(recorded, removals);
  });
}

// Fails the first, second, third ... request of a publish until it goes through; then the next one
// finishes what is left, whatever that is.
TEST(RegistryRaces, EveryRequestOfAPublishMayFail) {
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kFailAfter}) {
    bool went_through = false;
    for (std::uint64_t call = 1; !went_through; ++call) {
      SCOPED_TRACE(call);
      ASSERT_LT(call, 40U);
      RegistryWorld world(call);
      FaultyObjectStore faulty(world.memory, fault_nth_call(call, {.kind = kind}), world.clock,
                               inline_executor());
      const Registry registry({faulty, world.clock, world.random, writer_of("alice")});
      const VersionRef ref = ref_of("a/b@v1");
      const std::string nonce = world.random.token();
      const auto publish = [&] {
        const auto reservation = registry.reserve(world.context, ref, {.nonce = nonce});
        return reservation && registry.commit(world.context, *reservation, facts_of("x")) &&
               registry.aliases().set(world.context, ref.dataset, alias_of("current"), ref.version);
      };
      if (publish()) {
        went_through = faulty.calls() < call;
      } else if (!registry.resolve(world.context, ref)) {
        EXPECT_TRUE(publish());
      }
      EXPECT_EQ(lawful_history(world, ref).size(), 2U);
    }
  }
}

}  // namespace

}  // namespace millrace
