#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/mutex.h"
#include "dataset/publish_uploads.h"
#include "dataset/publisher.h"
#include "dataset/store_source.h"
#include "objectstore/prefixed_object_store.h"
#include "tests/dataset/publish_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A few of everything: samples with labels, large files, an empty file, directory and link.
void fill_published_tree(PublishWorld& world) {
  for (int i = 0; i < 40; ++i) {
    world.tree.write(fmt::format("train/{:04}.jpg", i), publish_bytes(20'000 + i * 7, i));
    world.tree.write(fmt::format("train/{:04}.cls", i), fmt::format("{}", i % 3));
  }
  world.tree.write("large/a.bin", publish_bytes(300'000, 1001));
  world.tree.write("large/b.bin", publish_bytes(9'000'001, 1002));
  world.tree.write("empty.txt", "");
  world.tree.write(std::string("odd/\xff\xfe name\n\t'\"", 15), "not utf-8");
  world.tree.make_directory("void/deeper");
  world.tree.link("current", "train/0001.jpg");
  world.tree.set_mode("train/0003.jpg", 0640);
  world.tree.set_mtime("train/0003.jpg", 1'700'000'000'123'456'789);
}

std::map<std::string, std::string> tree_contents(const PublishWorld& world) {
  std::map<std::string, std::string> found{{"/", ""}};
  for (const auto& item : std::filesystem::recursive_directory_iterator(world.tree.root())) {
    const std::string path = item.path().string().substr(world.tree.root().size() + 1);
    if (item.is_symlink()) {
      found[path + "@"] = std::filesystem::read_symlink(item.path()).string();
    } else if (item.is_directory()) {
      found[path + "/"] = "";
    } else {
      std::ifstream file(item.path(), std::ios::binary);
      found[path] = std::string(std::istreambuf_iterator<char>(file), {});
    }
  }
  return found;
}

TEST(Publish, AVersionHoldsWhatTheTreeHeld) {
  PublishWorld world;
  fill_published_tree(world);
  const auto report = world.publish("imagenet@v1");
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(world.contents("imagenet@v1"), tree_contents(world));
  EXPECT_EQ(report->files, 84u);
  EXPECT_EQ(report->objects, 2u);
  EXPECT_GT(report->packs, 2u);
  const VersionEntry entry = world.registry.resolve(world.context, ref_of("imagenet@v1")).value();
  EXPECT_EQ(entry.facts->totals.files, 84u);
  EXPECT_EQ(entry.facts->totals.symlinks, 1u);
  EXPECT_EQ(entry.facts->sample_count, 43u) << "40 of train, 2 of large, empty.txt";
  const auto manifest = world.manifest("imagenet@v1");
  const auto index = manifest->resolve("train/0003.jpg").value();
  const ManifestEntry file = manifest->entry(*index).value();
  EXPECT_EQ(file.mode(), 0640);
  EXPECT_EQ(file.mtime_ns(), 1'700'000'000'123'456'789);
  // Large files lie at their own paths.
  const auto keys = world.keys("imagenet/v1/");
  EXPECT_TRUE(std::ranges::any_of(
      keys, [](const std::string& key) { return key.ends_with("/files/large/b.bin"); }));
}

TEST(Publish, TheSameTreeHasTheSameDigestHoweverItIsPacked) {
  PublishWorld world;
  fill_published_tree(world);
  PublishOptions other = world.options();
  other.packs.target_bytes = 100'000;
  other.without_base = true;
  ASSERT_TRUE(world.publish("a@v1"));
  ASSERT_TRUE(world.publish("b@v1", other));
  const auto facts = [&](std::string_view ref) {
    return *world.registry.version(world.context, ref_of(ref)).value().facts;
  };
  EXPECT_EQ(facts("a@v1").content_digest, facts("b@v1").content_digest);
  EXPECT_NE(facts("a@v1").layout.layout_digest, facts("b@v1").layout.layout_digest);
}

TEST(Publish, ASecondVersionStoresOnlyWhatChanged) {
  PublishWorld world;
  fill_published_tree(world);
  ASSERT_TRUE(world.publish("imagenet@v1"));
  world.tree.write("train/0007.jpg", publish_bytes(20'049, 99));
  world.tree.write("train/9999.jpg", publish_bytes(5000, 100));
  std::filesystem::remove(world.tree.path("train/0002.jpg"));
  // A large file is found again under another name.
  std::filesystem::rename(world.tree.path("large/b.bin"), world.tree.path("large/c.bin"));
  const auto report = world.publish("imagenet@v2");
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(world.contents("imagenet@v2"), tree_contents(world));
  EXPECT_EQ(report->base->text(), "v1");
  EXPECT_LT(report->stored_bytes, 32'000u);
  EXPECT_GE(report->reused_bytes, 9'000'001u + 300'000u);
  const VersionEntry entry = world.registry.version(world.context, ref_of("imagenet@v2")).value();
  EXPECT_EQ(entry.facts->layout.parents, std::vector{ref_of("imagenet@v1")});
  // The first one is as it was.
  EXPECT_NE(world.contents("imagenet@v1"), tree_contents(world));
}

TEST(Publish, AFileThatOnlyLooksUnchangedIsStillRead) {
  PublishWorld world;
  world.tree.write("a.txt", "one");
  world.tree.set_mtime("a.txt", 1'700'000'000'000'000'000);
  ASSERT_TRUE(world.publish("d@v1"));
  world.tree.write("a.txt", "two");
  world.tree.set_mtime("a.txt", 1'700'000'000'000'000'000);
  ASSERT_TRUE(world.publish("d@v2"));
  EXPECT_EQ(world.contents("d@v2").at("a.txt"), "two");
}

TEST(Publish, SmallLabelsAreNotShared) {
  PublishWorld world;
  world.tree.write("a.jpg", publish_bytes(1000, 1));
  world.tree.write("a.cls", "7");
  ASSERT_TRUE(world.publish("d@v1"));
  world.tree.write("b.jpg", publish_bytes(1000, 2));
  world.tree.write("b.cls", "7");
  const auto report = world.publish("d@v2");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->reused_files, 2u);
  EXPECT_EQ(report->packs, 1u);
  EXPECT_EQ(world.contents("d@v2"), tree_contents(world));
}

TEST(Publish, ADryRunWritesNothing) {
  PublishWorld world;
  fill_published_tree(world);
  PublishOptions options = world.options();
  options.dry_run = true;
  const auto report = world.publish("imagenet@v1", options);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->files, 84u);
  EXPECT_FALSE(report->entry);
  EXPECT_TRUE(world.keys("").empty());
}

TEST(Publish, WhatCannotBePublishedIsListed) {
  PublishWorld world;
  world.tree.write("good.txt", "1");
  ASSERT_EQ(::mkfifo(world.tree.path("pipe").c_str(), 0600), 0);
  const auto refused = world.publish("d@v1");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("'pipe'"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("--skip-problems"));
  EXPECT_TRUE(world.keys("").empty()) << "nothing was reserved";
  PublishOptions options = world.options();
  options.skip_problems = true;
  const auto report = world.publish("d@v1", options);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->problems, 1u);
}

TEST(Publish, ATakenNameSaysByWhom) {
  PublishWorld world;
  world.tree.write("a", "1");
  ASSERT_TRUE(world.publish("d@v1"));
  const auto again = world.publish("d@v1");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), StatusCode::kConflict);
  EXPECT_THAT(again.error().to_string(), HasSubstr("alice@node7"));
}

// Gives other bytes from the second read on: whoever writes the file meanwhile.
class ChangingSource final : public SourceTree {
 public:
  ChangingSource(std::unique_ptr<SourceTree> inner, std::function<void()> change)
      : inner_(std::move(inner)), change_(std::move(change)) {}
  Status scan(const RequestContext& context, SourceSink& sink) override {
    MR_RETURN_IF_ERROR(inner_->scan(context, sink));
    change_();
    return {};
  }
  Result<std::unique_ptr<SourceFile>> open(const RequestContext& context,
                                           const SourceEntry& entry) override {
    return inner_->open(context, entry);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  const std::unique_ptr<SourceTree> inner_;
  const std::function<void()> change_;
};

TEST(Publish, AFileThatChangesAbortsItWithItsName) {
  for (const std::string_view name : {"train/0005.jpg", "large/b.bin"}) {
    PublishWorld world;
    fill_published_tree(world);
    ChangingSource source(DirectorySource::open_root(world.tree.root()).value(),
                          [&] { world.tree.write(name, "other"); });
    const auto report =
        publish(world.context, world.environment("state"), source, ref_of("d@v1"), world.options());
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), StatusCode::kConflict);
    EXPECT_THAT(report.error().to_string(), HasSubstr(name));
    EXPECT_FALSE(world.registry.resolve(world.context, ref_of("d@v1")));
    // Done again it goes on with what is there now.
    ASSERT_TRUE(world.publish("d@v1"));
    EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
  }
}

// Whatever call fails, and whether it took effect or not: doing it again succeeds, and what was
// stored and noted is not stored again.
TEST(Publish, AfterAFailureOfAnyCallItGoesOn) {
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kFailAfter}) {
    bool failed = true;
    for (std::uint64_t n = 1; failed; ++n) {
      SCOPED_TRACE(fmt::format("call {}", n));
      PublishWorld world;
      for (int i = 0; i < 12; ++i)
        world.tree.write(fmt::format("{}.jpg", i), publish_bytes(60'000, i));
      world.tree.write("large.bin", publish_bytes(700'000, 50));
      PublishOptions options = world.options();
      options.parallel = 1;
      world.faulty->set_plan(fault_nth_call(n, {.kind = kind}));
      failed = !world.publish("d@v1", options).has_value();
      world.faulty->set_plan(no_faults());
      if (failed) {
        const auto again = world.publish("d@v1", options);
        ASSERT_TRUE(again) << again.error().to_string();
      }
      EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
      // The first life may have stored what the second does not know of: a collection is to look.
      const VersionEntry entry = world.registry.version(world.context, ref_of("d@v1")).value();
      std::size_t strays = world.keys("d/v1/").size() - world.manifest("d@v1")->objects();
      if (strays > 0) {
        EXPECT_TRUE(entry.facts->resumed);
      }
      std::map<std::string, int> written;
      for (const RecordedRequest& request : world.recording->requests()) {
        const bool writes = request.operation == StoreOperation::kPut ||
                            request.operation == StoreOperation::kStartUpload;
        if (writes && request.key.starts_with("d/")) ++written[name_below_life(request.key)];
      }
      int twice = 0;
      for (const auto& [key, times] : written) {
        EXPECT_LE(times, 2) << key;
        if (times > 1) ++twice;
      }
      // The one whose answer was lost.
      EXPECT_LE(twice, 1);
    }
  }
}

TEST(Publish, OfManyAtOnceOneWinsAndTheOthersAreTold) {
  PublishWorld world;
  fill_published_tree(world);
  std::vector<Result<PublishReport>> reports(6, failure(StatusCode::kInternal, ""));
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < reports.size(); ++i) {
    threads.emplace_back([&, i] {
      reports[i] = world.publish("d@v1", world.options(), fmt::format("state-{}", i));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  std::size_t winners = 0;
  for (const auto& report : reports) {
    if (report) {
      ++winners;
    } else {
      EXPECT_EQ(report.error().code(), StatusCode::kConflict) << report.error().to_string();
    }
  }
  EXPECT_EQ(winners, 1u);
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
}

// Everything is stored, but the commit fails.
void publish_without_commit(PublishWorld& world, std::string_view ref) {
  world.faulty->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
    if (call.operation == StoreOperation::kPut && call.key.ends_with("/00000002.json")) {
      return Fault{.kind = Fault::Kind::kFailBefore};
    }
    return std::nullopt;
  });
  ASSERT_FALSE(world.publish(ref));
  world.faulty->set_plan(no_faults());
}

// Four files are a pack: four new ones in front shift the numbers of all packs, and their content
// stays.
TEST(Publish, PacksWhoseNumbersShiftAreNotOverwritten) {
  PublishWorld world;
  for (int n = 0; n < 16; ++n)
    world.tree.write(fmt::format("m{:02}", n), publish_bytes(60'000, n));
  publish_without_commit(world, "d@v1");
  for (int n = 0; n < 4; ++n)
    world.tree.write(fmt::format("a{:02}", n), publish_bytes(60'000, 100 + n));
  const auto again = world.publish("d@v1");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_GT(again->resumed_bytes, 900'000u) << "what was stored is not stored again";
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
}

// The last check misses one object, and another that is not what was stored.
TEST(Publish, WhatTheStoreHasNotAsItWasStoredIsStoredAgain) {
  PublishWorld world;
  fill_published_tree(world);
  publish_without_commit(world, "d@v1");
  const std::vector<std::string> keys = world.keys("d/v1/");
  ASSERT_GT(keys.size(), 3u);
  const std::array lost = {ObjectKey(keys[1])};
  ASSERT_TRUE(world.memory->remove(world.context, lost).ok());
  ASSERT_TRUE(world.memory->put(world.context, ObjectKey(keys[2]), Slice::from_string("x"), {}));
  world.recording->clear();
  const auto report = world.publish("d@v1");
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
  std::set<std::string> written;
  for (const RecordedRequest& request : world.recording->requests()) {
    const bool writes = request.operation == StoreOperation::kPut ||
                        request.operation == StoreOperation::kStartUpload;
    if (writes && request.key.starts_with("d/")) written.insert(name_below_life(request.key));
  }
  EXPECT_EQ(written, (std::set<std::string>{name_below_life(keys[1]), name_below_life(keys[2])}));
}

TEST(Publish, AStoreThatKeepsLosingAnObjectIsToldOf) {
  PublishWorld world;
  fill_published_tree(world);
  PublishOptions options = world.options();
  int losses = 0;
  std::string key;
  options.reached = [&](PublishPoint reached) {
    if (reached != PublishPoint::kAllStored) return;
    ++losses;
    key = world.keys("d/v1/").at(0);
    const std::array lost = {ObjectKey(key)};
    ASSERT_TRUE(world.memory->remove(world.context, lost).ok());
  };
  const auto told = world.publish("d@v1", options);
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code(), StatusCode::kConflict);
  EXPECT_THAT(told.error().message(), HasSubstr(key));
  EXPECT_THAT(told.error().message(), HasSubstr("it is gone"));
  EXPECT_EQ(losses, 3);
  // Once it does not, the same command mends it.
  const auto again = world.publish("d@v1");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
}

// What a killed publish has sent may reach the store later than all that the next one does.
TEST(Publish, RequestsOfAnEarlierLifeHitNothing) {
  PublishWorld world;
  fill_published_tree(world);
  std::set<std::string> sent;
  Mutex mutex;
  world.faulty->set_plan([&](const FaultableCall& call) -> std::optional<Fault> {
    const bool writes =
        call.operation == StoreOperation::kPut || call.operation == StoreOperation::kStartUpload;
    if (!writes || !call.key.starts_with("d/v1/")) return std::nullopt;
    MutexLock lock(mutex);
    sent.insert(call.key);
    return Fault{.kind = Fault::Kind::kFailBefore};
  });
  ASSERT_FALSE(world.publish("d@v1"));
  ASSERT_FALSE(sent.empty());
  world.faulty->set_plan(no_faults());
  // The numbers of packs now stand for other content, and a path too.
  world.tree.write("a first one", publish_bytes(60'000, 3001));
  world.tree.write("large/a.bin", publish_bytes(310'000, 3002));
  ASSERT_TRUE(world.publish("d@v1"));
  for (const std::string& key : sent)
    ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::from_string("late"), {}));
  EXPECT_TRUE(world.contents("d@v1") == tree_contents(world)) << "it is torn";
}

// A publish that ends right after its commit leaves its journal, as a kill does.
void publish_and_keep_journal(PublishWorld& world, std::string_view ref) {
  const std::string journals = world.state.path("state/publish");
  const std::string kept = world.state.path("kept");
  PublishOptions options = world.options();
  options.reached = [&](PublishPoint reached) {
    if (reached == PublishPoint::kCommitted) std::filesystem::copy(journals, kept);
  };
  ASSERT_TRUE(world.publish(ref, options));
  std::filesystem::remove_all(journals);
  std::filesystem::rename(kept, journals);
}

TEST(Publish, ItsOwnCommitIsRecognised) {
  for (const bool with_base : {false, true}) {
    SCOPED_TRACE(with_base);
    PublishWorld world;
    fill_published_tree(world);
    if (with_base) {
      ASSERT_TRUE(world.publish("d@v0"));
      world.tree.write("train/new.jpg", publish_bytes(30'000, 2001));
    }
    publish_and_keep_journal(world, "d@v1");
    const VersionEntry committed = world.registry.version(world.context, ref_of("d@v1")).value();
    world.recording->clear();
    const auto again = world.publish("d@v1");
    ASSERT_TRUE(again) << again.error().to_string();
    ASSERT_TRUE(again->entry);
    EXPECT_EQ(again->entry->number, committed.number);
    EXPECT_EQ(again->resumed_bytes, again->stored_bytes);
    EXPECT_EQ(world.recording->count(StoreOperation::kPut), 0u);
    EXPECT_EQ(world.recording->count(StoreOperation::kStartUpload), 0u);
    // It is done now, and the name is taken.
    const auto third = world.publish("d@v1");
    ASSERT_FALSE(third);
    EXPECT_THAT(third.error().to_string(), HasSubstr("never changes"));
  }
}

TEST(Publish, AnotherSourceIsNotTakenForItsOwnCommit) {
  const std::vector<std::function<void(PublishWorld&)>> changes = {
      [](PublishWorld& world) { world.tree.write("train/0005.cls", "other"); },
      [](PublishWorld& world) { world.tree.write("more", "new"); },
      [](PublishWorld& world) { std::filesystem::remove(world.tree.path("large/b.bin")); },
      [](PublishWorld& world) { world.tree.make_directory("void/more"); },
      [](PublishWorld& world) { world.tree.link("other", "train/0002.jpg"); },
  };
  for (std::size_t n = 0; n < changes.size(); ++n) {
    SCOPED_TRACE(n);
    PublishWorld world;
    fill_published_tree(world);
    publish_and_keep_journal(world, "d@v1");
    changes[n](world);
    world.recording->clear();
    const auto again = world.publish("d@v1");
    ASSERT_FALSE(again);
    EXPECT_EQ(again.error().code(), StatusCode::kConflict);
    EXPECT_THAT(again.error().to_string(), HasSubstr("never changes"));
    EXPECT_EQ(world.recording->count(StoreOperation::kPut), 0u);
    EXPECT_EQ(world.recording->count(StoreOperation::kStartUpload), 0u);
  }
}

TEST(Publish, ALostReservationBeginsAnew) {
  PublishWorld world;
  fill_published_tree(world);
  publish_without_commit(world, "d@v1");
  const auto entry = world.registry.version(world.context, ref_of("d@v1")).value();
  ASSERT_EQ(entry.state(), VersionState::kReserved);
  // As gc does.
  ASSERT_TRUE(world.registry.abort(world.context, Reservation::of(entry), "too old").ok());
  std::vector<ObjectKey> keys;
  for (const std::string& key : world.keys(reservation_prefix(ref_of("d@v1"), entry.nonce)))
    keys.emplace_back(key);
  ASSERT_GT(keys.size(), 3u);
  ASSERT_TRUE(world.memory->remove(world.context, keys).ok());
  const auto again = world.publish("d@v1");
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->resumed_bytes, 0u);
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
}

// A collection that gives it up deletes what it stored, at any moment.
TEST(Publish, WhoAbortsItIsNamed) {
  for (const PublishPoint point : {PublishPoint::kBaseOpened, PublishPoint::kPackStored,
                                   PublishPoint::kAllStored, PublishPoint::kManifestStored}) {
    SCOPED_TRACE(kPublishPoints[static_cast<std::size_t>(point)].name);
    PublishWorld world;
    fill_published_tree(world);
    PublishOptions options = world.options();
    options.parallel = 1;
    options.reached = [&](PublishPoint reached) {
      if (reached != point) return;
      const auto entry = world.registry.version(world.context, ref_of("d@v1")).value();
      if (entry.state() != VersionState::kReserved) return;
      ASSERT_TRUE(world.registry.abort(world.context, Reservation::of(entry), "too old").ok());
      std::vector<ObjectKey> keys;
      for (const std::string& key : world.keys("d/"))
        keys.emplace_back(key);
      ASSERT_TRUE(world.memory->remove(world.context, keys).ok());
    };
    const auto report = world.publish("d@v1", options);
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code(), StatusCode::kConflict);
    EXPECT_THAT(report.error().to_string(), HasSubstr("the reservation of d@v1 was aborted at"));
    EXPECT_THAT(report.error().to_string(), HasSubstr("alice@node7, process 4711 (too old)"));
  }
}

TEST(Publish, APathThatIsNoKeyIsStoredUnderADigest) {
  PublishWorld world;
  std::string path;
  for (int i = 0; i < 5; ++i)
    path += std::string(250, static_cast<char>('a' + i)) + "/";
  path += "file.bin";
  world.tree.write(path, publish_bytes(100'000, 1));
  ASSERT_TRUE(world.publish("d@v1"));
  EXPECT_EQ(world.contents("d@v1"), tree_contents(world));
}

// The store takes the prefix off what a key may have.
TEST(Publish, APathThatIsNoKeyBelowAPrefixIsStoredUnderADigest) {
  PublishWorld world;
  const std::string root = "some/where";
  PrefixedObjectStore below(world.faulty, root);
  const Registry registry({.store = below,
                           .clock = system_clock(),
                           .random = world.random,
                           .writer = writer_of("alice")});
  const std::size_t fits =
      kKeyBytesMax -
      (root + "/" + reservation_prefix(ref_of("d@v1"), std::string(32, '0')) + "files/").size();
  const auto path_of = [](std::size_t length) {
    std::string path(length, 'k');
    for (std::size_t at = 200; at + 1 < length; at += 201)
      path[at] = '/';
    return path;
  };
  world.tree.write(path_of(fits), publish_bytes(100'000, 1));
  world.tree.write(path_of(fits + 1), publish_bytes(100'000, 2));
  world.tree.write("large.bin", publish_bytes(9'000'000, 3));
  world.tree.write("deep/" + path_of(fits), publish_bytes(9'000'000, 4));
  PublishEnvironment environment{.store = below,
                                 .registry = registry,
                                 .buffers = world.buffers,
                                 .clock = system_clock(),
                                 .random = world.random,
                                 .state_directory = world.state.path("state")};
  const auto source = DirectorySource::open_root(world.tree.root()).value();
  const auto report = publish(world.context, environment, *source, ref_of("d@v1"), world.options());
  ASSERT_TRUE(report) << report.error().to_string();
  std::size_t own = 0;
  std::size_t digests = 0;
  for (const std::string& key : world.keys(root + "/d/v1/")) {
    own += key.contains("/files/");
    digests += key.contains("/objects/");
  }
  EXPECT_EQ(own, 2U);
  EXPECT_EQ(digests, 2U);
}

// Inside one store the large ones are copied there, and the small ones packed.
TEST(Publish, PromotesFromAStagingPrefix) {
  PublishWorld world;
  const auto put = [&](const std::string& key, const std::string& bytes) {
    ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::from_string(bytes), {}));
  };
  put("staging/x/large.bin", publish_bytes(200'000, 1));
  put("staging/x/a/1.jpg", publish_bytes(1000, 2));
  put("staging/x/a/1.cls", "3");
  StoreSource source(*world.faulty, "staging/x");
  PublishOptions options = world.options();
  options.origin = VersionOrigin::kPromoted;
  options.copied_from = [&](const SourceEntry& entry) {
    return ObjectInfo{
        .key = source.key_of(entry), .size = entry.size, .identity = ObjectIdentity(entry.token)};
  };
  const auto report =
      publish(world.context, world.environment("state"), source, ref_of("d@v1"), options);
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(world.recording->count(StoreOperation::kCopy), 1u);
  const auto contents = world.contents("d@v1");
  EXPECT_EQ(contents.at("large.bin"), publish_bytes(200'000, 1));
  EXPECT_EQ(contents.at("a/1.jpg"), publish_bytes(1000, 2));
  EXPECT_EQ(contents.at("a/1.cls"), "3");
}

}  // namespace
}  // namespace millrace
