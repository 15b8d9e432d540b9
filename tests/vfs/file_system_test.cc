// The whole tree over a store in memory: what every front end shows.
#include "vfs/file_system.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at_hand.h"
#include "base/log.h"
#include "dataset/registration.h"
#include "tests/dataset/version_world.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

class FileSystemTest : public ::testing::Test {
 protected:
  void publish(const std::string& ref) {
    const auto published = world.publish(ref);
    ASSERT_TRUE(published) << published.error().to_string();
  }
  std::map<std::string, std::string> walk(std::string_view path) {
    std::map<std::string, std::string> found;
    world.walk(world.at(path).number, "", found);
    return found;
  }
  void set_alias(std::string_view dataset, std::string_view alias, std::string_view version) {
    ASSERT_TRUE(world.registry.aliases().set(world.context, dataset_of(dataset), alias_of(alias),
                                             version_of(version)));
  }
  void pass_lifetime() { world.clock().advance(kShortLifetime); }

  VfsWorld world;
};

TEST_F(FileSystemTest, ShowsEveryVersionAsItWasPublished) {
  fill_tree(world.tree, 1);
  publish("vision/imagenet@v1");
  EXPECT_EQ(world.names(root_node()), std::vector<std::string>{"datasets"});
  EXPECT_EQ(world.names(world.at("datasets").number), std::vector<std::string>{"vision"});
  EXPECT_EQ(world.names(world.at("/datasets/vision/").number),
            std::vector<std::string>{"imagenet"});
  EXPECT_EQ(walk("datasets/vision/imagenet/v1"), world.contents("vision/imagenet@v1"));
}

TEST_F(FileSystemTest, AttributesAreThoseOfTheSource) {
  fill_tree(world.tree, 2);
  publish("a@v1");
  const NodeAttributes large = world.at("datasets/a/v1/large.bin");
  EXPECT_EQ(large.kind, NodeKind::kFile);
  EXPECT_EQ(large.permissions, 0640);
  EXPECT_EQ(large.size, std::filesystem::file_size(world.tree.path("large.bin")));
  EXPECT_EQ(large.lifetime, NodeLifetime::kForever);
  EXPECT_EQ(large.modified.time_since_epoch(), std::chrono::nanoseconds(1'234'567'890'123'456'789));
  const NodeAttributes link = world.at("datasets/a/v1/link");
  EXPECT_EQ(link.kind, NodeKind::kSymlink);
  EXPECT_EQ(link.size, std::string("large.bin").size());
  const NodeAttributes directory = world.at("datasets/a/v1/nothing");
  EXPECT_EQ(directory.kind, NodeKind::kDirectory);
  EXPECT_EQ(directory.permissions, 0555);
  EXPECT_EQ(world.at("datasets/a/v1").lifetime, NodeLifetime::kShort) << "its name may go";
}

TEST_F(FileSystemTest, ReadsAnyRange) {
  fill_tree(world.tree, 3);
  publish("a@v1");
  const std::string whole = world.contents("a@v1").at("large.bin");
  const NodeNumber file = world.at("datasets/a/v1/large.bin").number;
  std::mt19937_64 random(3);
  for (int n = 0; n < 200; ++n) {
    const std::uint64_t at = random() % (whole.size() + 100);
    const std::uint64_t length = random() % 70'000;
    const std::string wanted = at < whole.size() ? whole.substr(at, length) : "";
    ASSERT_EQ(world.read(file, {at, length}).value(), wanted) << at << "+" << length;
  }
}

TEST_F(FileSystemTest, AListingGoesOnWhereItStopped) {
  for (int n = 0; n < 25; ++n)
    world.tree.write("f" + std::to_string(n), "x");
  publish("a@v1");
  const NodeNumber directory = world.at("datasets/a/v1").number;
  const std::vector<std::string> all = world.names(directory);
  ASSERT_EQ(all.size(), 25u);
  std::vector<std::string> pieced;
  std::uint64_t cookie = 0;
  for (bool more = true; more;) {
    more = false;
    int shown = 0;
    ASSERT_TRUE(world.files()
                    .read_directory(world.context, directory, cookie,
                                    [&](const NodeEntry& entry) {
                                      if (shown++ == 4) {
                                        more = true;
                                        return false;
                                      }
                                      pieced.emplace_back(entry.name);
                                      cookie = entry.cookie;
                                      return true;
                                    })
                    .ok());
  }
  EXPECT_EQ(pieced, all);
}

TEST_F(FileSystemTest, WhatANodeCannotDoIsRefused) {
  world.tree.write("f", "content");
  world.tree.make_directory("d");
  publish("a@v1");
  const NodeNumber file = world.at("datasets/a/v1/f").number;
  const NodeNumber directory = world.at("datasets/a/v1/d").number;
  const auto nothing = [](const NodeEntry&) { return true; };
  FileSystem& files = world.files();
  EXPECT_EQ(files.read_directory(world.context, file, 0, nothing).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(files.open(world.context, directory).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.open(world.context, datasets_node()).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(files.open(world.context, root_node()).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.read_link(world.context, file).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.read_link(world.context, root_node()).error().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(files.lookup(world.context, directory, "f").error().code(), StatusCode::kNotFound);
  EXPECT_EQ(files.lookup(world.context, root_node(), "buckets").error().code(),
            StatusCode::kNotFound);
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{77} << 32, UINT64_MAX,
        std::uint64_t{1} << 63, version_node(tree_of(file), 1'000'000).value()}) {
    EXPECT_EQ(files.attributes(world.context, NodeNumber(number)).error().code(),
              StatusCode::kNotFound)
        << number;
  }
}

TEST_F(FileSystemTest, AnAliasIsASymlinkAndItsMoveIsSeenInTime) {
  world.tree.write("f", "one");
  publish("a@v1");
  world.tree.write("f", "two");
  publish("a@v2");
  set_alias("a", "current", "v1");
  const NodeAttributes alias = world.at("datasets/a/current");
  EXPECT_EQ(alias.kind, NodeKind::kSymlink);
  EXPECT_EQ(alias.size, 2u);
  EXPECT_EQ(alias.lifetime, NodeLifetime::kShort);
  EXPECT_EQ(world.files().read_link(world.context, alias.number).value(), "v1");
  EXPECT_THAT(world.names(world.at("datasets/a").number),
              ::testing::UnorderedElementsAre("current", "v1", "v2"));
  set_alias("a", "current", "v2");
  pass_lifetime();
  EXPECT_EQ(world.files().read_link(world.context, alias.number).value(), "v2");
  EXPECT_EQ(world.at("datasets/a/current").number, alias.number);
  set_alias("a", "current", "v1");
  EXPECT_EQ(world.files().read_link(world.context, alias.number).value(), "v2");
  world.datasets().ask_again();
  EXPECT_EQ(world.files().read_link(world.context, alias.number).value(), "v1") << "at once";
}

TEST_F(FileSystemTest, ARemovedVersionGoesAndWhoHasItReadsOn) {
  world.tree.write("f", "content");
  publish("a@v1");
  publish("a@v2");
  const NodeNumber file = world.at("datasets/a/v1/f").number;
  ASSERT_TRUE(world.registry.remove(world.context, ref_of("a@v1"), "old"));
  pass_lifetime();
  EXPECT_EQ(world.names(world.at("datasets/a").number), std::vector<std::string>{"v2"});
  EXPECT_EQ(world.files().resolve(world.context, "datasets/a/v1").error().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(world.read(file, {0, 100}).value(), "content");
  ASSERT_TRUE(world.registry.restore(world.context, ref_of("a@v1")));
  pass_lifetime();
  EXPECT_EQ(world.at("datasets/a/v1/f").number, file);
}

TEST_F(FileSystemTest, NumbersMeanTheSameAfterARestart) {
  fill_tree(world.tree, 4);
  publish("x/y@v1");
  publish("a@v1");
  set_alias("a", "current", "v1");
  std::map<std::string, NodeAttributes> before;
  for (const char* path : {"datasets", "datasets/x", "datasets/x/y", "datasets/x/y/v1",
                           "datasets/x/y/v1/large.bin", "datasets/a/v1/d0", "datasets/a/current"})
    before[path] = world.at(path);
  world.start();
  // By number first, as a kernel does that knows them still.
  for (const auto& [path, attributes] : before) {
    const auto after = world.files().attributes(world.context, attributes.number);
    ASSERT_TRUE(after) << path << ": " << after.error().to_string();
    EXPECT_EQ(after->number, attributes.number) << path;
    EXPECT_EQ(after->size, attributes.size) << path;
  }
  for (const auto& [path, attributes] : before)
    EXPECT_EQ(world.at(path).number, attributes.number) << path;
}

TEST_F(FileSystemTest, WhoWaitsForAManifestCanBeCalledOff) {
  fill_tree(world.tree, 4);
  publish("a@v1");
  const NodeNumber file = world.at("datasets/a/v1/large.bin").number;
  world.stop();
  std::filesystem::remove_all(world.state.path("opened"));
  world.start();
  const RequestContext called_off(TimePoint::max(), "somebody");
  called_off.cancellation().request();
  const auto refused = world.files().attributes(called_off, file);
  ASSERT_FALSE(refused) << "the manifest was fetched for nobody";
  EXPECT_EQ(refused.error().code(), StatusCode::kCancelled);
  EXPECT_TRUE(world.files().attributes(world.context, file)) << "and others get it";
}

TEST_F(FileSystemTest, WhatIsNotAtHandIsRefusedToWhoMustNotWait) {
  fill_tree(world.tree, 4);
  publish("a@v1");
  const NodeNumber file = world.at("datasets/a/v1/large.bin").number;
  const NodeNumber above = world.at("datasets/a").number;
  world.start();
  const auto attempt = [&](NodeNumber node) {
    const AtHandOnly at_hand(AtHandOnly::Reach::kMemory);
    const auto found = world.files().attributes(world.context, node);
    EXPECT_EQ(found.has_value(), !at_hand.refused());
    return found.has_value();
  };
  EXPECT_FALSE(attempt(file)) << "its version is not open";
  EXPECT_TRUE(world.files().attributes(world.context, version_node(tree_of(file), 0)));
  EXPECT_TRUE(world.files().attributes(world.context, file));
  EXPECT_TRUE(attempt(file)) << "all of it is in memory";
  EXPECT_FALSE(attempt(above)) << "what the store is asked for never is";
}

TEST_F(FileSystemTest, CachedFilesAreReadWhileTheStoreIsAway) {
  LogCapture quiet;
  fill_tree(world.tree, 5);
  publish("a@v1");
  const std::map<std::string, std::string> all = walk("datasets/a/v1");
  const NodeNumber root = world.at("datasets/a/v1").number;
  world.faulty->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  pass_lifetime();
  EXPECT_EQ(walk("datasets/a/v1"), all) << "what the registry said before still holds";
  world.start();
  std::map<std::string, std::string> after;
  const auto attributes = world.files().attributes(world.context, root);
  ASSERT_TRUE(attributes) << attributes.error().to_string();
  const NodeNumber file = world.files().lookup(world.context, root, "large.bin").value().number;
  EXPECT_EQ(world.read(file, {0, 1 << 20}).value(), all.at("large.bin"));
}

TEST_F(FileSystemTest, AnObjectThatChangedIsAnErrorThatNamesTheVersion) {
  world.tree.write("large.bin", publish_bytes(200'000, 1));
  publish("a@v1");
  const std::vector<std::string> keys = world.keys("a/v1/");
  ASSERT_EQ(keys.size(), 1u);
  const NodeNumber number = world.at("datasets/a/v1/large.bin").number;
  for (const bool deleted : {false, true}) {
    if (deleted) {
      ASSERT_TRUE(world.memory->remove(world.context, std::vector{ObjectKey(keys[0])}).ok());
    } else {
      ASSERT_TRUE(
          world.memory->put(world.context, ObjectKey(keys[0]), Slice::copy_of("another"), {}));
    }
    LogCapture log;
    const auto file = world.files().open(world.context, number).value();
    for (int n = 0; n < 3; ++n) {
      const auto read = world.read(*file, {0, 100});
      ASSERT_FALSE(read);
      EXPECT_EQ(read.error().code(), StatusCode::kPreconditionFailed);
      EXPECT_NE(read.error().message().find("a@v1"), std::string::npos) << read.error().message();
    }
    const std::string text = log.text();
    for (const std::string& part :
         {std::string("an object of a version was changed or deleted"), std::string("dataset=a"),
          std::string("version=v1"), "key=" + keys[0], std::string("path=large.bin")}) {
      const std::size_t at = text.find(part);
      ASSERT_NE(at, std::string::npos) << part << " in " << text;
      EXPECT_EQ(text.find(part, at + 1), std::string::npos) << "once: " << text;
    }
  }
}

TEST_F(FileSystemTest, ReadsRegisteredObjectsWhereTheyAre) {
  const std::string bytes = publish_bytes(300'000, 9);
  ASSERT_TRUE(world.other->put(world.context, ObjectKey("in/x/f"), Slice::copy_of(bytes), {}));
  const auto registered =
      register_version(world.context, world.environment("state"),
                       {.prefix = "in/", .store = world.other.get(), .store_url = "memory://other"},
                       ref_of("r@v1"), {});
  ASSERT_TRUE(registered) << registered.error().to_string();
  EXPECT_EQ(walk("datasets/r/v1"),
            (std::map<std::string, std::string>{{"/", ""}, {"x/", ""}, {"x/f", bytes}}));
}

TEST_F(FileSystemTest, TellsWhatItKnows) {
  world.tree.write("large.bin", publish_bytes(2'000'000, 1));
  publish("a@v1");
  const NodeNumber file = world.at("datasets/a/v1/large.bin").number;
  const auto fact = [&](const std::string& name) -> std::string {
    const std::vector<NodeFact> facts = world.files().facts(world.context, file).value();
    const auto found = std::ranges::find(facts, name, &NodeFact::name);
    return found == facts.end() ? "" : found->value;
  };
  EXPECT_EQ(fact("version"), "a@v1");
  EXPECT_TRUE(fact("digest").starts_with("sha256:"));
  EXPECT_EQ(fact("cached"), "no");
  ASSERT_TRUE(world.read(file, {0, 10}));
  while (fact("cached") == "no")
    std::this_thread::yield();  // It is written after it was delivered.
  EXPECT_EQ(fact("cached"), "part");
  const TreeUsage usage = world.files().usage(world.context, file).value();
  EXPECT_EQ(usage.bytes, 2'000'000u);
  EXPECT_EQ(usage.nodes, 2u);
}

}  // namespace
}  // namespace millrace
