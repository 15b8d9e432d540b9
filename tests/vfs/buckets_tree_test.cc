// /buckets over a store in memory, through the whole tree.
#include "vfs/buckets_tree.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"
#include "platform/faulty_disk.h"
#include "tests/vfs/buckets_world.h"

namespace millrace {
namespace {

using Names = std::vector<std::string>;

class BucketsTreeTest : public ::testing::Test {
 protected:
  std::shared_ptr<OpenFile> open(std::string_view path) {
    return world.files().open(world.context, world.at(path).number).value();
  }
  StatusCode read_failure(OpenFile& file, ByteRange range) {
    const auto read = world.read(file, range);
    return read ? StatusCode::kOk : read.error().code();
  }

  BucketsWorld world;
  LogCapture log;
};

TEST_F(BucketsTreeTest, ShowsTheObjectsOfItsStores) {
  world.put("a", "one");
  world.put("d/b", "");
  const ObjectInfo info = world.put("d/e/c", "three");
  EXPECT_EQ(world.names(root_node()), (Names{"buckets", "datasets"}));
  EXPECT_EQ(world.names(buckets_node()), Names{"train"});
  std::map<std::string, std::string> found;
  world.walk(world.at("buckets").number, "", found);
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"/", ""},
                                                       {"train/", ""},
                                                       {"train/a", "one"},
                                                       {"train/d/", ""},
                                                       {"train/d/b", ""},
                                                       {"train/d/e/", ""},
                                                       {"train/d/e/c", "three"}}));
  const NodeAttributes file = world.at("buckets/train/d/e/c");
  EXPECT_EQ(file.kind, NodeKind::kFile);
  EXPECT_EQ(file.permissions, 0444);
  EXPECT_EQ(file.size, 5u);
  EXPECT_EQ(file.modified, std::chrono::floor<std::chrono::seconds>(info.modified));
  EXPECT_EQ(file.lifetime, NodeLifetime::kShort);
  const NodeAttributes directory = world.at("buckets/train/d");
  EXPECT_EQ(directory.kind, NodeKind::kDirectory);
  EXPECT_EQ(directory.permissions, 0555);
  EXPECT_EQ(directory.lifetime, NodeLifetime::kShort);
  EXPECT_EQ(world.files().parent(world.context, buckets_node()).value(), root_node());
}

TEST_F(BucketsTreeTest, WhatANodeCannotDoIsRefused) {
  world.put("d/f", "x");
  const NodeNumber file = world.at("buckets/train/d/f").number;
  const NodeNumber directory = world.at("buckets/train/d").number;
  FileSystem& files = world.files();
  const auto all = [](const NodeEntry&) { return true; };
  EXPECT_EQ(files.open(world.context, directory).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.open(world.context, buckets_node()).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.lookup(world.context, file, "x").error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.read_directory(world.context, file, 0, all).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(files.read_link(world.context, file).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(world.failure_at("buckets/other"), StatusCode::kNotFound);
  EXPECT_EQ(world.failure_at("buckets/train/d/none"), StatusCode::kNotFound);
  EXPECT_EQ(world.failure_at("buckets/train/d/.."), StatusCode::kNotFound);
  const NodeNumber never = named_node(NamedNodes::kBuckets, "train/never");
  EXPECT_EQ(files.attributes(world.context, never).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(files.read_directory(world.context, directory, 77, all).code(), StatusCode::kNotFound);
  EXPECT_EQ(files.read_directory(world.context, directory, hash_of(directory), all).code(),
            StatusCode::kInvalidArgument)
      << "a cookie of another directory";
}

TEST_F(BucketsTreeTest, OpeningAndReadingTakesTheFewestRequests) {
  world.put("d/f", "content");
  const NodeNumber directory = world.at("buckets/train/d").number;
  world.asked->clear();
  EXPECT_EQ(world.names(directory), Names{"f"});
  const NodeNumber file = world.files().lookup(world.context, directory, "f").value().number;
  ASSERT_TRUE(world.files().attributes(world.context, file));
  EXPECT_EQ(world.read(file, {0, 100}).value(), "content");
  EXPECT_EQ(world.read(file, {3, 2}).value(), "te");
  EXPECT_EQ(world.asked->count(StoreOperation::kList), 1u);
  EXPECT_EQ(world.asked->count(StoreOperation::kGetRange), 1u);
  EXPECT_EQ(world.asked->count(), 2u);
}

TEST_F(BucketsTreeTest, AnOpenFileIsPinned) {
  const std::string before(16 * kMiB, 'b');
  world.put("f", before);
  const auto file = open("buckets/train/f");
  EXPECT_EQ(world.read(*file, {0, 65'536}).value(), before.substr(0, 65'536));
  EXPECT_EQ(file->size(), before.size());
  world.put("f", std::string(before.size(), 'a'));
  EXPECT_EQ(read_failure(*file, {15 * kMiB, 100}), StatusCode::kPreconditionFailed);
  EXPECT_EQ(read_failure(*file, {14 * kMiB, 100}), StatusCode::kPreconditionFailed);
  EXPECT_EQ(world.read(*file, {100, 50}).value(), before.substr(0, 50)) << "what is cached";
  EXPECT_EQ(world.read(*file, {17 * kMiB, 50}).value(), "");
  const std::string text = log.text();
  const std::string line = "an object was changed or deleted while a file was open";
  EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_EQ(text.find(line, text.find(line) + 1), std::string::npos) << "once: " << text;
  EXPECT_NE(text.find("key=f"), std::string::npos) << text;
  // The failure has told that what was known of the name is old.
  EXPECT_EQ(world.read(*open("buckets/train/f"), {0, 3}).value(), "aaa");
}

TEST_F(BucketsTreeTest, ADeletedObjectReadsAsAChangedOne) {
  world.put("f", "content");
  const auto file = open("buckets/train/f");
  world.remove("f");
  EXPECT_EQ(read_failure(*file, {0, 7}), StatusCode::kPreconditionFailed);
  EXPECT_EQ(world.failure_at("buckets/train/f"), StatusCode::kNotFound);
}

TEST_F(BucketsTreeTest, ACompleteFileIsHandedOut) {
  const std::string bytes(2'000'000, 'x');
  world.put("large", bytes);
  world.put("empty", "");
  const auto file = open("buckets/train/large");
  EXPECT_EQ(file->complete(world.context).error().code(), StatusCode::kNotFound);
  const NodeNumber number = world.at("buckets/train/large").number;
  EXPECT_EQ(world.fact(number, "cached"), "no");
  EXPECT_EQ(world.read(*file, {0, bytes.size()}).value(), bytes);
  while (world.fact(number, "cached") != "yes")
    std::this_thread::yield();  // It is written after it was delivered.
  EXPECT_EQ(world.fact(number, "store"), "memory://train");
  EXPECT_EQ(world.fact(number, "key"), "large");
  EXPECT_EQ(world.fact(number, "etag"),
            world.objects->head(world.context, ObjectKey("large"))->identity.value());
  EXPECT_EQ(open("buckets/train/empty")->complete(world.context).error().code(),
            StatusCode::kNotFound);
  EXPECT_EQ(world.fact(world.at("buckets/train/empty").number, "cached"), "yes");
}

TEST_F(BucketsTreeTest, NumbersMeanTheSameAfterARestart) {
  world.put("d/e/f", "content");
  std::map<std::string, NodeNumber> before;
  for (const char* path :
       {"buckets", "buckets/train", "buckets/train/d", "buckets/train/d/e", "buckets/train/d/e/f"})
    before[path] = world.at(path).number;
  world.start();
  for (const auto& [path, number] : before) {
    const auto after = world.files().attributes(world.context, number);
    ASSERT_TRUE(after) << path << ": " << after.error().to_string();
    EXPECT_EQ(after->number, number) << path;
  }
  world.start();
  EXPECT_EQ(world.read(before["buckets/train/d/e/f"], {0, 7}).value(), "content");
  EXPECT_EQ(world.files().parent(world.context, before["buckets/train/d/e/f"]).value(),
            before["buckets/train/d/e"]);
  for (const auto& [path, number] : before)
    EXPECT_EQ(world.at(path).number, number) << path;
}

TEST_F(BucketsTreeTest, ANameOfAnotherKindIsAnotherNode) {
  world.put("x", "file");
  const NodeNumber file = world.at("buckets/train/x").number;
  world.remove("x");
  world.put("x/f", "below");
  world.pass_lifetime();
  const NodeAttributes directory = world.at("buckets/train/x");
  EXPECT_EQ(directory.kind, NodeKind::kDirectory);
  EXPECT_NE(directory.number, file);
  EXPECT_EQ(world.files().attributes(world.context, file).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(world.files().open(world.context, file).error().code(), StatusCode::kNotFound);
  world.remove("x/f");
  world.pass_lifetime();
  const auto all = [](const NodeEntry&) { return true; };
  EXPECT_EQ(world.files().read_directory(world.context, directory.number, 0, all).code(),
            StatusCode::kNotFound);
  EXPECT_EQ(world.names(world.at("buckets/train").number), Names()) << "a bucket may be empty";
}

// A million entries are many pages: a listing that was interrupted goes on by its cookie, with
// whatever changed meanwhile, after a restart too.
TEST_F(BucketsTreeTest, AListingGoesOnAfterARestart) {
  for (int n = 0; n < 2500; ++n)
    world.put("f" + std::to_string(10'000 + n), "x");
  const NodeNumber directory = world.at("buckets/train").number;
  Names shown;
  std::uint64_t cookie = 0;
  const auto stop_after = [&](std::size_t entries) {
    const std::size_t wanted = shown.size() + entries;
    ASSERT_TRUE(world.files()
                    .read_directory(world.context, directory, cookie,
                                    [&](const NodeEntry& entry) {
                                      shown.emplace_back(entry.name);
                                      cookie = entry.cookie;
                                      EXPECT_LT(cookie, std::uint64_t{1} << 62);
                                      return shown.size() < wanted;
                                    })
                    .ok());
  };
  stop_after(1234);
  world.remove("f11233");  // The last one shown.
  world.put("f10000-new-but-behind", "x");
  world.put("f12000-new", "x");
  world.start();
  stop_after(10'000);
  EXPECT_EQ(shown.size(), 2501u);
  EXPECT_TRUE(std::ranges::is_sorted(shown));
  EXPECT_EQ(std::ranges::count(shown, "f12000-new"), 1);
  EXPECT_EQ(std::ranges::adjacent_find(shown), shown.end());
}

// A gateway that shows these buckets.
std::unique_ptr<VfsWorld> world_of(const Names& buckets) {
  std::vector<BucketExport> exports;
  for (const std::string& name : buckets) {
    exports.push_back({.name = name,
                       .store = std::make_shared<MemoryObjectStore>(),
                       .id = StoreId("memory://" + name)});
  }
  return std::make_unique<VfsWorld>(FileSystemPolicy(), std::move(exports));
}

// The first `entries_max` names of a directory behind a cookie, which becomes that of the last.
Names list(VfsWorld& world, NodeNumber directory, std::size_t entries_max, std::uint64_t& cookie) {
  Names names;
  const auto show = [&](const NodeEntry& entry) {
    names.emplace_back(entry.name);
    cookie = entry.cookie;
    return names.size() < entries_max;
  };
  EXPECT_TRUE(world.files().read_directory(world.context, directory, cookie, show).ok());
  return names;
}

// A restart may change the settings, and so which buckets there are.
TEST(BucketsTree, S18AListingOfBucketsIsTakenUpWhicheverComeAndGo) {
  const auto before = world_of({"a", "b", "c", "d", "e"});
  const auto after = world_of({"b", "c", "d", "e", "f"});
  for (std::size_t stop = 1; stop <= 5; ++stop) {
    std::uint64_t cookie = 0;
    const Names first = list(*before, buckets_node(), stop, cookie);
    const Names rest = list(*after, buckets_node(), 100, cookie);
    for (const std::string name : {"b", "c", "d", "e"}) {
      EXPECT_EQ(std::ranges::count(first, name) + std::ranges::count(rest, name), 1)
          << name << " when " << stop << " were shown";
    }
  }
}

TEST(BucketsTree, S18AListingOfTheRootIsTakenUpWhetherOrNotThereAreBuckets) {
  const auto with = world_of({"a"});
  const auto without = world_of({});
  std::uint64_t cookie = 0;
  EXPECT_EQ(list(*with, root_node(), 1, cookie), Names{"buckets"});
  EXPECT_EQ(list(*without, root_node(), 100, cookie), Names{"datasets"});
  EXPECT_EQ(list(*with, root_node(), 100, cookie), Names());
}

TEST_F(BucketsTreeTest, CachedFilesAreReadWhileTheStoreIsAway) {
  world.put("d/f", "content");
  const NodeNumber file = world.at("buckets/train/d/f").number;
  ASSERT_TRUE(world.read(file, {0, 100}));
  world.names(world.at("buckets/train/d").number);
  world.cut_off();
  world.pass_lifetime();
  EXPECT_EQ(world.at("buckets/train/d/f").number, file);
  EXPECT_EQ(world.names(world.at("buckets/train/d").number), Names{"f"});
  EXPECT_EQ(world.read(file, {0, 100}).value(), "content");
  EXPECT_EQ(world.failure_at("buckets/train/unknown"), StatusCode::kUnavailable);
  EXPECT_EQ(world.names(buckets_node()), Names{"train"});
}

TEST_F(BucketsTreeTest, KeysThatAreNoNamesAreCounted) {
  world.put("a//b", "x");
  world.put("f", "x");
  EXPECT_EQ(world.names(world.at("buckets/train/a").number), Names());
  EXPECT_EQ(world.buckets().hidden_keys(), 1u);
}

// Policy: only versions are served.
TEST(RequireVersionTest, HidesBucketsFromNamesPathsAndNumbers) {
  BucketsWorld open_world;
  open_world.put("f", "x");
  const NodeNumber file = open_world.at("buckets/train/f").number;
  BucketsWorld world({}, {.require_version = true});
  world.put("f", "x");
  world.tree.write("f", "x");
  ASSERT_TRUE(world.publish("a@v1"));
  EXPECT_EQ(world.names(root_node()), Names{"datasets"});
  EXPECT_EQ(world.files().lookup(world.context, root_node(), "buckets").error().code(),
            StatusCode::kNotFound);
  for (const char* path : {"buckets", "buckets/", "/buckets/train", "buckets/train/f",
                           "//buckets//train//f", "train", "datasets/a/buckets"})
    EXPECT_EQ(world.failure_at(path), StatusCode::kNotFound) << path;
  const auto all = [](const NodeEntry&) { return true; };
  for (const NodeNumber number :
       {buckets_node(), file, named_node(NamedNodes::kBuckets, "train/")}) {
    FileSystem& files = world.files();
    EXPECT_EQ(files.attributes(world.context, number).error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.lookup(world.context, number, "train").error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.parent(world.context, number).error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.read_directory(world.context, number, 0, all).code(), StatusCode::kNotFound);
    EXPECT_EQ(files.open(world.context, number).error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.facts(world.context, number).error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.usage(world.context, number).error().code(), StatusCode::kNotFound);
    EXPECT_EQ(files.read_link(world.context, number).error().code(), StatusCode::kNotFound);
  }
  EXPECT_EQ(world.asked->count(), 0u) << "the store is not even asked";
  EXPECT_EQ(world.read(world.at("datasets/a/v1/f").number, {0, 1}).value(), "x");
}

TEST_F(BucketsTreeTest, NamesAreShownWhenTheDiskIsFull) {
  constexpr int kObjects = 2500;  // Of more bytes than wait for a flush.
  for (int n = 0; n < kObjects; ++n)
    world.put(std::string(200, 'd') + "/" + std::to_string(n), "x");
  FaultyDisk full(world.disk());
  const auto paths = NodePaths::open(full, "/state/other").value();
  ThreadPool requests{{.name = "requests", .threads = 1, .queued_tasks_max = 16}};
  BucketsTree tree(
      {.paths = *paths, .cache = world.cache(), .clock = world.clock(), .requests = requests},
      {{.name = "train", .store = world.broken, .id = StoreId("memory://train")}});
  full.set_fault(
      [](const DiskCall& call) { return call.operation == DiskOperation::kWrite ? ENOSPC : 0; });
  const auto child = [&](NodeNumber directory, const std::string& name) {
    const auto found = tree.lookup(world.context, directory, name);
    EXPECT_TRUE(found) << found.error().to_string();
    return found ? found->number : NodeNumber();
  };
  const NodeNumber directory = child(child(buckets_node(), "train"), std::string(200, 'd'));
  int shown = 0;
  const auto count = [&shown](const NodeEntry&) { return ++shown > 0; };
  EXPECT_TRUE(tree.read_directory(world.context, directory, 0, count).ok());
  EXPECT_EQ(shown, kObjects);
  const NodeNumber file = child(directory, "7");
  EXPECT_TRUE(tree.attributes(world.context, file));
  const std::string text = log.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;

  full.set_fault({});
  child(directory, "7");
  EXPECT_TRUE(NodePaths::open(world.disk(), "/state/other").value()->find(file)) << "once it can";
}

}  // namespace
}  // namespace millrace
