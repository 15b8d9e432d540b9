// Packs that are mostly garbage: what is needed of them moves, and nobody sees a difference.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "dataset/version_reader.h"
#include "dataset/version_repack.h"
#include "tests/dataset/garbage_world.h"
#include "tests/dataset/publish_world.h"
#include "tests/dataset/tar_archive.h"

namespace millrace {
namespace {

constexpr std::uint64_t kRepackSchedules = 119;

// Published trees of samples, of which later versions keep every fourth.
class RepackWorld : public PublishWorld {
 public:
  explicit RepackWorld(int samples = 40) : samples_(samples) {
    for (int n = 0; n < samples_; ++n)
      write_sample(n, 0);
    tree.write("lone.txt", publish_bytes(3'000, 77));
    tree.link("link", "lone.txt");
    tree.make_directory("void");
    EXPECT_TRUE(publish("a@v1"));
  }

  // Each has two files and a label without bytes.
  void write_sample(int n, int edition) {
    const std::uint64_t seed = static_cast<std::uint64_t>(n * 10 + edition);
    tree.write(fmt::format("d/{:03}.jpg", n), publish_bytes(9'000, seed));
    tree.write(fmt::format("d/{:03}.seg.png", n), publish_bytes(700, seed + 5));
    tree.write(fmt::format("d/{:03}.cls", n), "");
  }
  void change_most(int edition) {
    for (int n = 0; n < samples_; ++n) {
      if (n % 4 != 0) write_sample(n, edition);
    }
  }
  void remove(std::string_view ref) {
    ASSERT_TRUE(registry.remove(context, ref_of(ref), "test", Duration::zero()));
  }
  Result<GarbageReport> collect(ObjectStore& store, GarbageOptions options) {
    options.manifest_directory = state.path("gc");
    return GarbageCollector({.store = store,
                             .clock = system_clock(),
                             .random = random,
                             .writer = writer_of("gc")},
                            options)
        .run(context);
  }
  // Without a grace, and giving up what others left.
  GarbageReport collect() {
    auto report = collect(
        *memory, {.abort_repacks_after = Duration::zero(), .layout_grace = Duration::zero()});
    EXPECT_TRUE(report) << report.error().to_string();
    return report ? *std::move(report) : GarbageReport{};
  }
  VersionFacts facts(std::string_view ref) {
    return *registry.version(context, ref_of(ref)).value().facts;
  }
  // All keys but those of the logs, and what the versions need of them.
  std::set<std::string> stored() {
    std::set<std::string> found;
    for (const std::string& key : keys("")) {
      if (!key.starts_with(".millrace/datasets/")) found.insert(key);
    }
    return found;
  }
  std::set<std::string> needed(const std::vector<std::string>& refs) {
    std::set<std::string> found;
    for (const std::string& ref : refs) {
      found.insert(facts(ref).layout.manifest_key);
      const auto opened = manifest(ref);
      for (std::uint32_t n = 0; n < opened->objects(); ++n)
        found.insert(opened->object(n).value().key.value());
    }
    return found;
  }

 private:
  const int samples_;
};

TEST(GarbageRepack, MovesWhatIsNeededAndFreesThePacks) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  const auto before = world.contents("a@v2");
  const VersionFacts old = world.facts("a@v2");
  const std::size_t packs = world.keys("a/v1/").size();
  ASSERT_GT(packs, 1U);
  world.remove("a@v1");

  const GarbageReport report = world.collect();
  EXPECT_EQ(report.repacked, std::vector{ref_of("a@v2")});
  EXPECT_EQ(report.repacked_packs, packs);
  EXPECT_TRUE(report.not_repacked.empty());
  EXPECT_GT(report.copied_bytes, 0U);
  EXPECT_LT(report.copied_bytes, report.repacked_bytes / 2);
  const VersionFacts now = world.facts("a@v2");
  EXPECT_EQ(now.content_digest, old.content_digest);
  EXPECT_NE(now.layout.layout_digest, old.layout.layout_digest);
  EXPECT_TRUE(now.layout.parents.empty());
  EXPECT_TRUE(now.repacked);
  EXPECT_FALSE(now.repacking);
  EXPECT_EQ(world.contents("a@v2"), before);
  // Who holds the old layout reads on.
  EXPECT_EQ(world.keys("a/v1/").size(), packs);

  const GarbageReport next = world.collect();
  EXPECT_EQ(next.objects, packs);
  EXPECT_EQ(next.repacked_packs, 0U);
  EXPECT_TRUE(world.keys("a/v1/").empty());
  EXPECT_EQ(world.stored(), world.needed({"a@v2"}));
  EXPECT_EQ(world.contents("a@v2"), before);

  // The next publish takes over what was moved.
  const auto third = world.publish("a@v3");
  ASSERT_TRUE(third) << third.error().to_string();
  EXPECT_EQ(third->stored_bytes, 0U);
  EXPECT_EQ(world.contents("a@v3"), before);
}

TEST(GarbageRepack, ANewPackIsAShardWithWholeSamples) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.remove("a@v1");
  ASSERT_EQ(world.collect().repacked.size(), 1U);
  const std::string prefix =
      reservation_prefix(ref_of("a@v2"), world.facts("a@v2").repacked->nonce);
  std::map<std::string, int> samples;
  std::vector<std::string> paths;
  for (const std::string& key : world.keys(prefix)) {
    const Slice archive = world.memory->get(world.context, {.key = ObjectKey(key)}).value().data;
    std::string last;
    for (const TarReadMember& read : list_archive(archive.text())) {
      const std::string base = read.member.path.substr(0, read.member.path.find('.'));
      // Their files follow one another.
      if (base != last) {
        EXPECT_EQ(samples[base], 0) << base;
      }
      ++samples[base];
      last = base;
      paths.push_back(read.member.path);
    }
  }
  EXPECT_EQ(samples.size(), 11U);
  for (const auto& [base, files] : samples)
    EXPECT_EQ(files, base == "lone" ? 1 : 3) << base;
  EXPECT_TRUE(std::ranges::is_sorted(
      paths, [](const std::string& a, const std::string& b) { return compare_entries(a, b) < 0; }));
}

TEST(GarbageRepack, VersionsThatShareAPackShareWhatIsMoved) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.change_most(2);
  ASSERT_TRUE(world.publish("a@v3"));
  const auto second = world.contents("a@v2");
  const auto third = world.contents("a@v3");
  world.remove("a@v1");
  const GarbageReport report = world.collect();
  EXPECT_EQ(report.repacked.size(), 2U);
  EXPECT_LT(report.copied_bytes, report.repacked_bytes / 2);
  EXPECT_EQ(world.facts("a@v3").layout.parents, std::vector{ref_of("a@v2")});
  const GarbageReport next = world.collect();
  EXPECT_EQ(next.repacked_packs, 0U);
  EXPECT_TRUE(world.keys("a/v1/").empty());
  EXPECT_EQ(world.contents("a@v2"), second);
  EXPECT_EQ(world.contents("a@v3"), third);
  EXPECT_EQ(world.stored(), world.needed({"a@v2", "a@v3"}));

  world.remove("a@v2");
  for (int n = 0; n < 3; ++n)
    world.collect();
  EXPECT_EQ(world.contents("a@v3"), third);
  EXPECT_EQ(world.stored(), world.needed({"a@v3"}));
}

TEST(GarbageRepack, TakesNothingOverFromAVersionThatIsGone) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.change_most(2);
  ASSERT_TRUE(world.publish("a@v3"));
  const auto third = world.contents("a@v3");
  world.remove("a@v1");
  const RegistryAccess access{.store = *world.memory,
                              .clock = system_clock(),
                              .random = world.random,
                              .writer = writer_of("gc")};
  VersionRepacker repacker(access, {.manifest_directory = world.state.path("repack")},
                           world.keys("a/v1/"));
  const auto repack = [&](std::string_view ref) {
    return repacker.repack(world.context, ref_of(ref), world.facts(ref).layout);
  };
  const auto moved = repack("a@v2");
  ASSERT_TRUE(moved) << moved.error().to_string();
  world.remove("a@v2");
  ASSERT_TRUE(world.collect(*world.memory, {.repack = false}));
  EXPECT_TRUE(world.keys("a/v2/").empty());
  const auto copied = repack("a@v3");
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_EQ(copied->copied_bytes, moved->copied_bytes);
  EXPECT_EQ(world.contents("a@v3"), third);
  // One that was planned by a layout from before is refused, and leaves nothing open.
  EXPECT_EQ(repacker.repack(world.context, ref_of("a@v3"), moved->layout).error().code(),
            StatusCode::kConflict);
  EXPECT_FALSE(world.facts("a@v3").repacking);
}

TEST(GarbageRepack, LeavesAPackThatARemovedVersionNames) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.change_most(2);
  ASSERT_TRUE(world.publish("a@v3"));
  const auto second = world.contents("a@v2");
  world.remove("a@v1");
  ASSERT_TRUE(world.registry.remove(world.context, ref_of("a@v2"), "test"));
  EXPECT_EQ(world.collect().repacked_packs, 0U);
  ASSERT_TRUE(world.registry.restore(world.context, ref_of("a@v2")));
  EXPECT_EQ(world.contents("a@v2"), second);
}

TEST(GarbageRepack, LeavesAPackThatIsHalfAlive) {
  RepackWorld world;
  for (int n = 0; n < 8; ++n)
    world.write_sample(n, 1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.remove("a@v1");
  const GarbageReport report = world.collect();
  EXPECT_EQ(report.purged.size(), 1U);
  EXPECT_EQ(report.repacked_packs, 0U);
  EXPECT_EQ(report.objects, 0U);
}

TEST(GarbageRepack, ADryRunOrARefusalChangesNothing) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  world.remove("a@v1");
  ASSERT_TRUE(world.collect(*world.memory, {.repack = false}));
  const std::vector<std::string> before = world.keys("");
  EXPECT_EQ(world.collect(*world.memory, {.repack = false})->repacked_packs, 0U);
  EXPECT_EQ(world.keys(""), before);
  const GarbageReport dry = world.collect(*world.memory, {.dry_run = true}).value();
  EXPECT_EQ(world.keys(""), before);
  EXPECT_TRUE(dry.repacked.empty());
  const GarbageReport real = world.collect(*world.memory, {}).value();
  EXPECT_EQ(real.repacked_packs, dry.repacked_packs);
  EXPECT_EQ(real.repacked_bytes, dry.repacked_bytes);
  EXPECT_GT(dry.repacked_packs, 0U);
}

TEST(GarbageRepack, KeepsAReplacedLayoutForItsGrace) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  const std::string manifest = world.facts("a@v2").layout.manifest_key;
  world.remove("a@v1");
  ASSERT_EQ(world.collect(*world.memory, {})->repacked.size(), 1U);
  const auto packs = world.keys("a/v1/");
  ASSERT_EQ(world.collect(*world.memory, {})->objects, 0U);
  EXPECT_EQ(world.keys("a/v1/"), packs);
  EXPECT_TRUE(world.stored().contains(manifest));
  world.collect();
  EXPECT_TRUE(world.keys("a/v1/").empty());
  EXPECT_FALSE(world.stored().contains(manifest));
}

TEST(GarbageRepack, ADamagedPackIsNotCopiedAndSaid) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  const VersionLayout layout = world.facts("a@v2").layout;
  world.remove("a@v1");
  // Replaced: it has another identity.
  const std::string key = world.keys("a/v1/").front();
  ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::copy_of("damaged"), {}));
  const GarbageReport report = world.collect();
  EXPECT_TRUE(report.repacked.empty());
  EXPECT_EQ(report.repacked_packs, 0U);
  ASSERT_EQ(report.not_repacked.size(), 1U);
  EXPECT_NE(report.not_repacked[0].message().find(key), std::string::npos);
  EXPECT_EQ(world.facts("a@v2").layout, layout);
  EXPECT_FALSE(world.facts("a@v2").repacking);
}

TEST(GarbageRepack, AReaderOfTheOldLayoutReadsOn) {
  RepackWorld world;
  world.change_most(1);
  ASSERT_TRUE(world.publish("a@v2"));
  const auto contents = world.contents("a@v2");
  const auto old = world.manifest("a@v2");
  world.remove("a@v1");
  int asked = 0;
  const VersionReader reader(*world.memory, *old, ref_of("a@v2"),
                             {.newest_layout = [&](const RequestContext&) {
                               ++asked;
                               return Result<std::unique_ptr<Manifest>>(world.manifest("a@v2"));
                             }});
  const auto read_all = [&](const VersionReader& from) -> Status {
    VersionWindow window(from);
    ManifestCursor cursor(from.manifest());
    std::vector<std::byte> buffer(100'000);
    while (const auto item = cursor.next().value()) {
      if (item->entry.kind() != EntryKind::kFile) continue;
      MR_ASSIGN_OR_RETURN(const std::size_t size,
                          window.read_at(world.context, item->entry, 0, buffer));
      EXPECT_EQ(as_text(ByteView(buffer).first(size)), contents.at(std::string(item->path)));
    }
    return {};
  };
  EXPECT_TRUE(read_all(reader).ok());
  EXPECT_EQ(asked, 0);
  world.collect();
  world.collect();
  EXPECT_TRUE(read_all(reader).ok());
  EXPECT_TRUE(read_all(reader).ok());
  EXPECT_EQ(asked, 1);
  const VersionReader plain(*world.memory, *old, ref_of("a@v2"));
  EXPECT_EQ(read_all(plain).code(), StatusCode::kPreconditionFailed);
}

// From the n-th request on nothing reaches the store, or every answer is lost.
TEST(GarbageRepack, FailsAtAnyRequestAndTheNextOneDoesTheRest) {
  for (const bool takes_effect : {false, true}) {
    for (std::uint64_t fail_at = 1;; fail_at += takes_effect ? 1 : 3) {
      SCOPED_TRACE(fmt::format("request {} {}", fail_at, takes_effect));
      ASSERT_LT(fail_at, 300U);
      RepackWorld world(8);
      world.change_most(1);
      ASSERT_TRUE(world.publish("a@v2"));
      const auto before = world.contents("a@v2");
      world.remove("a@v1");
      std::uint64_t calls = 0;
      const auto lose = [&]() -> Status {
        return ++calls >= fail_at ? Status(StatusCode::kUnavailable, "killed") : Status();
      };
      const auto pass = [] { return Status(); };
      GuardedObjectStore store(world.memory, takes_effect ? GuardedObjectStore::Guard(pass) : lose,
                               takes_effect ? GuardedObjectStore::Guard(lose) : pass);
      const bool done = world.collect(store, {}).has_value();
      EXPECT_EQ(world.contents("a@v2"), before);
      for (int n = 0; n < 3; ++n)
        world.collect();
      EXPECT_EQ(world.contents("a@v2"), before);
      EXPECT_EQ(world.stored(), world.needed({"a@v2"}));
      EXPECT_TRUE(world.keys("a/v1/").empty());
      if (done || ::testing::Test::HasFailure()) break;
    }
  }
}

// A publish that began before the repack, and takes over files by the layout from before.
TEST(GarbageRepack, APublishThatReadTheOldLayoutKeepsItsPacks) {
  std::uint64_t repacked = 0;
  for (std::uint64_t seed = 1; seed <= 20 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    GarbageWorld world(seed);
    const Registry registry = world.registry();
    ASSERT_TRUE(world.publisher(seed, true).publish(ref_of("a@v1"), std::nullopt).ok());
    ASSERT_TRUE(world.publisher(seed + 1, true).publish(ref_of("a@v2"), ref_of("a@v1")).ok());
    const Reservation open = registry.reserve(world.context, ref_of("a@v3"), {}).value();
    const auto layout = world.publisher(seed + 2, true).store(open, ref_of("a@v2"));
    ASSERT_TRUE(registry.remove(world.context, ref_of("a@v1"), "test", Duration::zero()));
    for (int n = 0; n < 2; ++n) {
      const auto report = world.collect({.layout_grace = Duration::zero()});
      ASSERT_TRUE(report.has_value()) << report.error().to_string();
      repacked += report->repacked.size();
    }
    VersionFacts facts = facts_of("v3");
    facts.layout = layout.value();
    ASSERT_TRUE(registry.commit(world.context, open, facts));
    world.check_versions();
    for (int n = 0; n < 3; ++n)
      ASSERT_TRUE(world.collect({.layout_grace = Duration::zero()}).has_value());
    EXPECT_EQ(world.stored(), world.check_versions());
  }
  EXPECT_GT(repacked, 0U);
}

// Somebody repacks a version while a collection is at work: begins and takes files over from
// another version, which is removed then, and ends, each before a request that the seed chooses. Or
// all of it at once, after a publish has taken files over by the layout from before.
TEST(GarbageRepack, ARepackMayHappenBetweenTwoRequestsOfACollection) {
  const VersionRef first = ref_of("a@v1");
  const VersionRef second = ref_of("a@v2");
  for (std::uint64_t seed = 1; seed <= kRepackSchedules && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    GarbageWorld world(seed);
    const Registry registry = world.registry();
    ASSERT_TRUE(world.publisher(seed).publish(first, std::nullopt).ok());
    ASSERT_TRUE(world.publisher(seed + 1).publish(second, first).ok());
    Reservation work{.ref = first};
    std::optional<VersionLayout> layout;
    const auto begin = [&](const VersionRef& other) {
      if (const auto begun = registry.begin_repack(world.context, first, "test")) {
        work.nonce = begun->nonce;
        layout = world.publisher(seed + 2).store(work, other).value();
      }
    };
    const auto end = [&] {
      if (layout) (void)registry.relayout(world.context, first, work.nonce, *layout);
    };
    // What the first layout named is garbage now.
    begin(first);
    end();

    const bool publishes = seed / 30 == 0;
    std::optional<Reservation> third;
    VersionFacts facts = facts_of("v3");
    const std::vector<std::function<void()>> events = {
        [&] {
          if (!publishes) return;
          third = registry.reserve(world.context, ref_of("a@v3"), {}).value();
          facts.layout = world.publisher(seed + 3).store(*third, first).value();
        },
        [&] { begin(second); },
        [&] { (void)registry.remove(world.context, second, "test", Duration::zero()); }, end,
        [&] {
          if (third) {
            EXPECT_TRUE(registry.commit(world.context, *third, facts));
          }
        }};
    const std::uint64_t start = 1 + seed % 30;
    const std::vector<std::uint64_t> moments = {start, start, start + (publishes ? 0 : seed % 2),
                                                start + seed / 30 * 10, 100};
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
    options.layout_grace = Duration::zero();
    (void)GarbageCollector({store, world.clock, world.random, writer_of("gc")}, options)
        .run(world.context);
    while (next < events.size())
      events[next++]();
    world.check_versions();
    ASSERT_TRUE(world.collect({.layout_grace = Duration::zero()}).has_value());
    EXPECT_EQ(world.stored(), world.check_versions());
  }
}

}  // namespace
}  // namespace millrace
