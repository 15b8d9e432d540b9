// Publishers, removers and collections at once, as interleavings that a seed decides, with
// participants that are killed or paused at any request. No version that can be read or restored
// ever lacks an object; when all have ended, one more collection leaves nothing else.

#include <algorithm>
#include <atomic>
#include <random>

#include "tests/dataset/garbage_world.h"
#include "tests/dataset/registry_turns.h"

namespace millrace {
namespace {

#if defined(MILLRACE_SANITIZED)
constexpr std::uint64_t kGarbageSeeds = 8;
#else
constexpr std::uint64_t kGarbageSeeds = 25;
#endif

class GarbageRace {
 public:
  explicit GarbageRace(std::uint64_t seed) : world(seed), random(seed), turns_(seed), seed_(seed) {}

  using Body = std::function<void(const RegistryAccess& access, std::mt19937_64& random)>;
  void add(std::string name, Body body) { bodies_.emplace_back(std::move(name), std::move(body)); }

  void run() {
    std::vector<std::function<void()>> participants;
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      // A quarter of them are killed: from some request on nothing reaches the store any more.
      const std::uint64_t last = random() % 4 == 0 ? 1 + random() % 80 : UINT64_MAX;
      // Half of them stand still for a while before some request.
      const std::uint64_t pause_at = random() % 2 == 0 ? 1 + random() % 30 : UINT64_MAX;
      const std::uint64_t pause_turns = 50 + random() % 1500;
      auto calls = std::make_shared<std::uint64_t>(0);
      stores_.push_back(std::make_shared<GuardedObjectStore>(
          world.memory, [this, last, pause_at, pause_turns, calls]() -> Status {
            const std::uint64_t call = ++*calls;
            for (std::uint64_t n = 0; n < (call == pause_at ? pause_turns : 1); ++n)
              turns_.pass();
            return call > last ? Status(StatusCode::kUnavailable, "killed") : Status();
          }));
      participants.push_back([this, i] {
        const RegistryAccess access{*stores_[i], world.clock, world.random,
                                    writer_of(bodies_[i].first)};
        std::mt19937_64 own(seed_ * 100 + i);
        bodies_[i].second(access, own);
      });
    }
    turns_.run(std::move(participants));
  }

  GarbageWorld world;
  std::mt19937_64 random;

 private:
  Turns turns_;
  const std::uint64_t seed_;
  std::vector<std::pair<std::string, Body>> bodies_;
  std::vector<std::shared_ptr<GuardedObjectStore>> stores_;
};

VersionRef race_ref(std::uint64_t number) { return ref_of("a@v" + std::to_string(number)); }

// With packs, collections repack, too.
void race_collections(bool packs) {
  const RequestContext context = RequestContext::background();
  std::atomic<std::uint64_t> published = 0;
  std::atomic<std::uint64_t> repacked = 0;
  std::uint64_t deleted = 0;
  for (std::uint64_t seed = 1; seed <= kGarbageSeeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    GarbageRace race(seed);
    GarbageWorld& world = race.world;
    ASSERT_TRUE(world.publisher(1, packs).publish(race_ref(1), std::nullopt).ok());
    ASSERT_TRUE(world.publisher(2, packs).publish(race_ref(2), race_ref(1)).ok());
    for (std::uint64_t p = 0; p < 3; ++p) {
      race.add("publisher" + std::to_string(p),
               [&, p](const RegistryAccess& access, std::mt19937_64& random) {
                 FakePublisher publisher(access, world.folder.file("p" + std::to_string(p)),
                                         random(), packs);
                 for (int n = 0; n < 2; ++n) {
                   const Status status =
                       publisher.publish(race_ref(3 + random() % 4), race_ref(1 + random() % 3));
                   if (status.ok()) ++published;
                 }
               });
    }
    race.add("remover", [&](const RegistryAccess& access, std::mt19937_64& random) {
      const Registry registry(access);
      for (int n = 0; n < 6; ++n)
        (void)registry.remove(context, race_ref(1 + random() % 6), "test", Duration::zero());
    });
    for (int g = 0; g < 2; ++g) {
      race.add(
          "gc" + std::to_string(g), [&, g](const RegistryAccess& access, std::mt19937_64& random) {
            for (int n = 0; n < 3; ++n) {
              GarbageOptions options;
              options.manifest_directory = world.folder.file("gc" + std::to_string(g));
              // The clock stands still, so that 0 is the age of all.
              options.abort_after = random() % 3 == 0 ? Duration::zero() : std::chrono::hours(9);
              options.abort_repacks_after = options.abort_after;
              options.wait = random() % 2 == 0 ? Duration::zero() : std::chrono::seconds(60);
              options.layout_grace = Duration::zero();
              const auto report = GarbageCollector(access, options).run(context);
              if (report) repacked += report->repacked.size();
            }
          });
    }
    race.run();
    world.check_versions();

    const auto before = world.stored();
    // The second one deletes what the first one repacks.
    for (int n = 0; n < 2; ++n) {
      const auto report =
          world.collect({.abort_after = Duration::zero(), .layout_grace = Duration::zero()});
      ASSERT_TRUE(report.has_value()) << report.error().to_string();
      EXPECT_TRUE(report->open.empty());
      EXPECT_TRUE(report->not_repacked.empty());
    }
    const auto needed = world.check_versions();
    const auto after = world.stored();
    deleted += std::max(before.size(), after.size()) - after.size();
    for (const std::string& key : after)
      EXPECT_TRUE(needed.contains(key)) << key << " is left";
  }
  EXPECT_GT(published, kGarbageSeeds / 4);
  EXPECT_GT(deleted, kGarbageSeeds / 4);
  EXPECT_EQ(repacked > kGarbageSeeds / 4, packs) << repacked;
}

TEST(GarbageRaces, NoVersionEverLacksAnObject) { race_collections(false); }

TEST(GarbageRaces, NorWhileItIsRepacked) { race_collections(true); }

}  // namespace
}  // namespace millrace
