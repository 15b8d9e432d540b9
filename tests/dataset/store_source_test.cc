#include "dataset/store_source.h"

#include <map>
#include <memory>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/source_listing.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/recording_object_store.h"
#include "tests/dataset/source_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

const RequestContext kStoreContext = RequestContext::background();

class StoreSourceTest : public ::testing::Test {
 protected:
  ObjectInfo put(const std::string& key, std::string_view text = "x") {
    return memory_->put(kStoreContext, ObjectKey(key), Slice::copy_of(text), {}).value();
  }

  std::shared_ptr<MemoryObjectStore> memory_ = std::make_shared<MemoryObjectStore>();
  RecordingObjectStore store_{memory_};
};

TEST_F(StoreSourceTest, KeysBehindThePrefixArePaths) {
  const ObjectInfo info = put("data/a/b.txt", "hello");
  put("data/c", "");
  put("data/folder/");
  put("datax/no");
  put("dat");
  memory_->put(kStoreContext, ObjectKey("data/folder/"), Slice(), {}).value();
  for (const std::string prefix : {"data", "data/"}) {
    StoreSource source(store_, prefix);
    const auto found = scan_all(source);
    EXPECT_TRUE(found->problems().empty());
    ASSERT_EQ(found->entries().size(), 3U);
    const SourceEntry& file = found->at("a/b.txt");
    EXPECT_EQ(file.kind, EntryKind::kFile);
    EXPECT_EQ(file.size, 5U);
    EXPECT_EQ(file.token, info.identity.value());
    EXPECT_EQ(file.mtime_ns, info.modified.time_since_epoch().count());
    EXPECT_EQ(file.mode, std::nullopt);
    EXPECT_EQ(found->at("folder").kind, EntryKind::kDirectory);
    EXPECT_EQ(read_source(source, file).value(), "hello");
    EXPECT_EQ(read_source(source, found->at("c")).value(), "");
  }
  StoreSource everything(store_, "");
  EXPECT_EQ(scan_all(everything)->entries().size(), 5U);
  StoreSource nothing(store_, "none");
  EXPECT_TRUE(scan_all(nothing)->entries().empty());
}

TEST_F(StoreSourceTest, ReportsKeysThatCannotBeNames) {
  const std::string long_name(256, 'n');
  for (const char* key : {"p//a", "p/b//", "p/./c", "p/../d", "p/e/.", "p/f/..", "p//"})
    put(key);
  put("p/" + long_name + "/x");
  put("p/bytes/", "some");
  put("p/fine");
  memory_->put(kStoreContext, ObjectKey("p/"), Slice(), {}).value();
  StoreSource source(store_, "p");
  const auto found = scan_all(source);
  std::set<std::string> problems;
  for (const auto& [path, reason] : found->problems())
    problems.insert(path);
  const std::set<std::string> expected = {
      "/a", "b//", "./c", "../d", "e/.", "f/..", "/", long_name + "/x", "bytes/"};
  EXPECT_EQ(problems, expected);
  EXPECT_THAT(found->problems().at("bytes/"), HasSubstr("4 bytes"));
  // The marker of the prefix itself is the root.
  ASSERT_EQ(found->entries().size(), 2U);
  EXPECT_EQ(found->at("").kind, EntryKind::kDirectory);
  EXPECT_EQ(found->at("fine").kind, EntryKind::kFile);
}

TEST_F(StoreSourceTest, AnObjectThatIsADirectoryTooIsAProblem) {
  for (const char* key : {"a", "a-b", "a-b/c", "a/x", "a0", "b", "b!", "c", "c/", "d", "d!/y"})
    put(key);
  memory_->put(kStoreContext, ObjectKey("c/"), Slice(), {}).value();
  // Also where listings are cut between the two.
  for (const std::size_t ranges : {1, 2, 3, 4, 5, 100}) {
    SCOPED_TRACE(ranges);
    StoreSource source(store_, "", {.threads = 3, .ranges_max = ranges, .page_entries_max = 2});
    const auto found = scan_all(source);
    EXPECT_THAT(
        found->problems(),
        ::testing::ElementsAre(::testing::Key("a"), ::testing::Key("a-b"), ::testing::Key("c")));
    std::set<std::string> paths;
    for (const auto& [path, entry] : found->entries())
      paths.insert(path);
    EXPECT_EQ(paths, (std::set<std::string>{"a-b/c", "a/x", "a0", "b", "b!", "c", "d", "d!/y"}));
    EXPECT_EQ(found->at("c").kind, EntryKind::kDirectory);
  }
}

// What a scan must give, straight from the rules.
struct ModelScan {
  std::set<std::string> entries;
  std::set<std::string> problems;
};
ModelScan model_scan(const std::map<std::string, bool>& keys) {
  ModelScan model;
  for (const auto& [key, is_empty] : keys) {
    const bool ends_in_slash = key.ends_with('/');
    const std::string path = ends_in_slash ? key.substr(0, key.size() - 1) : key;
    const auto below = keys.lower_bound(key + "/");
    const bool has_below = below != keys.end() && below->first.starts_with(key + "/");
    if (entry_path_fault(path) || (ends_in_slash && !is_empty) || (!ends_in_slash && has_below)) {
      model.problems.insert(key);
    } else {
      model.entries.insert(path);
    }
  }
  return model;
}

TEST_F(StoreSourceTest, AgreesWithAModel) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    memory_ = std::make_shared<MemoryObjectStore>();
    std::map<std::string, bool> keys;
    const std::size_t count = random() % 150;
    for (std::size_t n = 0; n < count; ++n) {
      std::string key(1, "abc"[random() % 3]);
      const std::size_t length = random() % 9;
      for (std::size_t at = 0; at < length; ++at)
        key += "ab/./-0"[random() % 7];
      const bool is_empty = random() % 2 == 0;
      keys[key] = is_empty;
      put(key, is_empty ? "" : "x");
    }
    const ModelScan model = model_scan(keys);
    StoreSource source(*memory_, "",
                       {.threads = 1 + random() % 4,
                        .ranges_max = 1 + random() % 12,
                        .page_entries_max = static_cast<std::uint32_t>(1 + random() % 9)});
    const auto found = scan_all(source);
    std::set<std::string> entries;
    std::set<std::string> problems;
    for (const auto& [path, entry] : found->entries())
      entries.insert(path);
    for (const auto& [path, reason] : found->problems())
      problems.insert(path);
    EXPECT_EQ(entries, model.entries);
    EXPECT_EQ(problems, model.problems);
  }
}

TEST_F(StoreSourceTest, SplitsIntoRangesThatLeaveNothingOut) {
  for (int d = 0; d < 50; ++d) {
    for (int f = 0; f < 20; ++f)
      put("p/d" + std::to_string(d) + "/f" + std::to_string(f));
  }
  SourceSplit split(store_, "p/", 16, 100);
  const auto ranges = split.run(kStoreContext, 4).value();
  ASSERT_EQ(ranges.size(), 16U);
  EXPECT_EQ(ranges.front().after, "");
  EXPECT_EQ(ranges.back().through, "");
  for (std::size_t n = 1; n < ranges.size(); ++n) {
    EXPECT_EQ(ranges[n].after, ranges[n - 1].through);
    EXPECT_LT(ranges[n - 1].after, ranges[n - 1].through);
  }
  // One folded listing shows 50 directories, which is enough.
  EXPECT_EQ(store_.count(), 1U);

  store_.clear();
  StoreSource source(store_, "p", {.threads = 4, .ranges_max = 16, .page_entries_max = 100});
  EXPECT_EQ(scan_all(source)->entries().size(), 1000U);
  EXPECT_LE(store_.count(), 1U + 2 * 16U);
}

TEST_F(StoreSourceTest, GoesDownUntilThereAreEnoughDirectories) {
  for (int d = 0; d < 30; ++d)
    put("one/two/three/d" + std::to_string(d) + "/f");
  SourceSplit split(store_, "", 8, 1000);
  EXPECT_EQ(split.run(kStoreContext, 4).value().size(), 8U);
  EXPECT_LE(store_.count(), 4U + 4U);
}

TEST_F(StoreSourceTest, NoticesChangedObjects) {
  for (const bool ignores_conditions : {false, true}) {
    SCOPED_TRACE(ignores_conditions);
    put("k", "first");
    put("zero", "");
    StoreSource source(store_, "");
    const auto found = scan_all(source);
    const auto file = source.open(kStoreContext, found->at("k")).value();
    std::string text(5, '\0');
    const MutableByteView into = std::as_writable_bytes(std::span(text));
    EXPECT_EQ(file->read_at(kStoreContext, 0, into.first(2)).value(), 2U);
    put("k", ignores_conditions ? "longer than before" : "other");
    put("zero", "");
    const auto read = file->read_at(kStoreContext, 2, into.first(3));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code(), StatusCode::kConflict);
    EXPECT_THAT(read.error().message(), HasSubstr("'k'"));
    EXPECT_FALSE(file->unchanged(kStoreContext).value());
    // Without a read, one request tells.
    const auto empty = source.open(kStoreContext, found->at("zero")).value();
    EXPECT_FALSE(empty->unchanged(kStoreContext).value());
    ASSERT_TRUE(memory_->remove(kStoreContext, std::vector{ObjectKey("k")}).ok());
    const auto gone = source.open(kStoreContext, found->at("k")).value();
    EXPECT_FALSE(gone->unchanged(kStoreContext).value());
    EXPECT_EQ(gone->read_at(kStoreContext, 0, into).error().code(), StatusCode::kConflict);
  }
}

TEST_F(StoreSourceTest, ReadsOnceAndLooksNoMore) {
  put("k", "hello");
  StoreSource source(store_, "");
  const auto found = scan_all(source);
  store_.clear();
  EXPECT_EQ(read_source(source, found->at("k")).value(), "hello");
  EXPECT_EQ(store_.count(), 1U);
  // Past the end there is nothing, and nothing is asked.
  const auto file = source.open(kStoreContext, found->at("k")).value();
  std::byte one;
  EXPECT_EQ(file->read_at(kStoreContext, 5, {&one, 1}).value(), 0U);
  EXPECT_EQ(store_.count(), 1U);
}

TEST_F(StoreSourceTest, EveryListingMayFail) {
  for (int n = 0; n < 60; ++n)
    put("d" + std::to_string(n % 6) + "/f" + std::to_string(n));
  put("d1");
  for (std::uint64_t call = 1;; ++call) {
    FaultyObjectStore faulty(memory_, fault_nth_call(call, {.kind = Fault::Kind::kFailBefore}),
                             system_clock(), inline_executor());
    StoreSource source(faulty, "", {.threads = 1, .ranges_max = 4, .page_entries_max = 7});
    CollectedSource collected;
    const Status status = source.scan(kStoreContext, collected);
    if (status.ok()) {
      EXPECT_LT(faulty.calls(), call);
      EXPECT_EQ(collected.entries().size(), 60U);
      EXPECT_EQ(collected.problems().size(), 1U);
      EXPECT_GT(call, 10U);
      break;
    }
    EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace millrace
