// The claims of docs/semantics.md that the tree can show without a front end. A test's name begins
// with the number of its claim.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/at_hand.h"
#include "base/log.h"
#include "tests/dataset/version_world.h"
#include "tests/vfs/buckets_world.h"
#include "vfs/access.h"

namespace millrace {
namespace {

using NameList = std::vector<std::string>;

class SemanticsTest : public ::testing::Test {
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
  NameList names(std::string_view path) { return world.names(world.at(path).number); }
  std::string content(std::string_view path) {
    return world.read(world.at(path).number, {0, 1 << 20}).value_or("unreadable");
  }
  void set_alias(std::string_view version) {
    ASSERT_TRUE(world.registry.aliases().set(world.context, dataset_of("a"), alias_of("current"),
                                             version_of(version)));
  }
  std::shared_ptr<OpenFile> open(std::string_view path) {
    return world.files().open(world.context, world.at(path).number).value();
  }
  StatusCode read_code(OpenFile& file, ByteRange range) {
    const auto read = world.read(file, range);
    return read ? StatusCode::kOk : read.error().code();
  }
  // A request that does not wait for long.
  RequestContext soon() const {
    return world.context.with_deadline(system_clock().now() + std::chrono::milliseconds(50));
  }
  std::string target(NodeNumber link) {
    return world.files().read_link(world.context, link).value();
  }

  // Front ends let clients believe what the tree said for so long; what is left of the 5 s is the
  // tree's.
  void pass_what_clients_leave_of_five_seconds() {
    world.clock().advance(std::chrono::seconds(5) - kNameLifetime);
  }

  BucketsWorld world;
  LogCapture log;
};

TEST_F(SemanticsTest, S1VersionsNeverChange) {
  fill_tree(world.tree, 1);
  publish("a@v1");
  const auto before = walk("datasets/a/v1");
  const NodeAttributes file = world.at("datasets/a/v1/large.bin");
  world.tree.write("large.bin", "another");
  publish("a@v2");
  world.pass_lifetime();
  for (int n = 0; n < 2; ++n) {
    EXPECT_EQ(walk("datasets/a/v1"), before);
    EXPECT_EQ(world.at("datasets/a/v1/large.bin"), file);
    world.start();
  }
}

TEST_F(SemanticsTest, S2AliasesAreSymlinksThatMoveWithinFiveSeconds) {
  world.tree.write("f", "x");
  publish("a@v1");
  publish("a@v2");
  set_alias("v1");
  const NodeAttributes alias = world.at("datasets/a/current");
  EXPECT_EQ(alias.kind, NodeKind::kSymlink);
  EXPECT_EQ(target(alias.number), "v1");
  set_alias("v2");
  pass_what_clients_leave_of_five_seconds();
  EXPECT_EQ(target(alias.number), "v2");
}

TEST_F(SemanticsTest, S3VersionsComeAndGoWithinFiveSeconds) {
  world.tree.write("f", "content");
  publish("a@v1");
  publish("a@v2");
  const auto file = open("datasets/a/v1/f");
  const NodeNumber number = world.at("datasets/a/v1/f").number;
  ASSERT_TRUE(world.registry.remove(world.context, ref_of("a@v1"), "old"));
  publish("a@v3");
  pass_what_clients_leave_of_five_seconds();
  EXPECT_THAT(names("datasets/a"), ::testing::UnorderedElementsAre("v2", "v3"));
  EXPECT_EQ(world.read(*file, {0, 7}).value(), "content");
  EXPECT_EQ(world.read(number, {0, 7}).value(), "content");
}

TEST_F(SemanticsTest, S4AChangedObjectOfAVersionIsAnError) {
  world.tree.write("large.bin", publish_bytes(200'000, 1));
  publish("a@v1");
  const std::string key = world.keys("a/v1/").at(0);
  ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::copy_of("another"), {}));
  const auto file = open("datasets/a/v1/large.bin");
  for (int n = 0; n < 3; ++n)
    EXPECT_EQ(read_code(*file, {0, 100}), StatusCode::kPreconditionFailed);
  const std::string text = log.text();
  for (const std::string& part : {std::string("dataset=a"), std::string("version=v1"), "key=" + key,
                                  std::string("path=large.bin")}) {
    ASSERT_NE(text.find(part), std::string::npos) << part << " in " << text;
    EXPECT_EQ(text.find(part), text.rfind(part)) << "once: " << text;
  }
}

TEST_F(SemanticsTest, S5FactsOfVersions) {
  world.tree.write("large.bin", publish_bytes(2'000'000, 1));
  publish("a@v1");
  const NodeNumber file = world.at("datasets/a/v1/large.bin").number;
  const NodeNumber root = world.at("datasets/a/v1").number;
  EXPECT_EQ(world.fact(root, "version"), "a@v1");
  EXPECT_TRUE(world.fact(root, "digest").starts_with("sha256:"));
  EXPECT_EQ(world.fact(root, "cached"), "");
  EXPECT_EQ(world.fact(file, "version"), "a@v1");
  EXPECT_EQ(world.fact(file, "digest"), world.fact(root, "digest"));
  EXPECT_EQ(world.fact(file, "cached"), "no");
}

TEST_F(SemanticsTest, S6UsageIsThatOfTheVersion) {
  world.tree.write("d/f", "12345");
  publish("a@v1");
  const TreeUsage usage =
      world.files().usage(world.context, world.at("datasets/a/v1/d").number).value();
  EXPECT_EQ(usage.bytes, 5u);
  EXPECT_EQ(usage.nodes, 3u);
}

TEST_F(SemanticsTest, S7BucketsAreLive) {
  world.put("a/b", "one");
  EXPECT_EQ(names("buckets/train"), NameList{"a"});
  EXPECT_EQ(content("buckets/train/a/b"), "one");
  world.put("a/b", "longer");
  world.put("c", "new");
  pass_what_clients_leave_of_five_seconds();
  EXPECT_EQ(names("buckets/train"), (NameList{"a", "c"}));
  EXPECT_EQ(content("buckets/train/a/b"), "longer");
  world.remove("a/b");
  pass_what_clients_leave_of_five_seconds();
  EXPECT_EQ(names("buckets/train"), NameList{"c"});
}

TEST_F(SemanticsTest, S8OpenFilesOfBucketsArePinned) {
  const std::string before(16 * kMiB, 'b');
  world.put("f", before);
  const auto file = open("buckets/train/f");
  EXPECT_EQ(world.read(*file, {0, 100}).value(), before.substr(0, 100));
  world.put("f", std::string(16 * kMiB, 'a'));
  EXPECT_EQ(read_code(*file, {15 * kMiB, 100}), StatusCode::kPreconditionFailed);
  EXPECT_EQ(world.read(*file, {0, 100}).value(), before.substr(0, 100));
  EXPECT_EQ(world.read(*open("buckets/train/f"), {0, 1}).value(), "a");
  world.remove("f");
  EXPECT_EQ(read_code(*file, {15 * kMiB, 100}), StatusCode::kPreconditionFailed);
}

TEST_F(SemanticsTest, S9KeysThatAreNoNamesAreHidden) {
  for (const char* key : {"a//b", "./b", "../b", "both", "both/b", "fine"})
    world.put(key, "x");
  world.put(std::string(256, 'n'), "x");
  world.put("made/", "");
  world.put("odd/", "bytes");
  EXPECT_EQ(names("buckets/train"), (NameList{"a", "both", "fine", "made", "odd"}));
  EXPECT_EQ(world.at("buckets/train/both").kind, NodeKind::kDirectory);
  EXPECT_EQ(world.at("buckets/train/made").kind, NodeKind::kDirectory);
  EXPECT_EQ(world.buckets().hidden_keys(), 4u);
  EXPECT_EQ(names("buckets/train/a"), NameList());
  EXPECT_EQ(names("buckets/train/odd"), NameList());
  EXPECT_EQ(world.buckets().hidden_keys(), 6u);
  const std::string text = log.text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 3) << "one for each directory: " << text;
}

TEST_F(SemanticsTest, S10FactsOfBuckets) {
  const ObjectInfo info = world.put("d/f", "x");
  const NodeNumber file = world.at("buckets/train/d/f").number;
  EXPECT_EQ(world.fact(file, "store"), "memory://train");
  EXPECT_EQ(world.fact(file, "key"), "d/f");
  EXPECT_EQ(world.fact(file, "etag"), info.identity.value());
  EXPECT_EQ(world.fact(file, "cached"), "no");
  EXPECT_EQ(world.fact(world.at("buckets/train/d").number, "key"), "d/");
}

TEST_F(SemanticsTest, S11OnlyVersionsWhenRequired) {
  BucketsWorld strict({}, {.require_version = true});
  strict.put("f", "x");
  EXPECT_EQ(strict.names(root_node()), NameList{"datasets"});
  EXPECT_EQ(strict.failure_at("buckets/train/f"), StatusCode::kNotFound);
  EXPECT_EQ(strict.files().attributes(strict.context, buckets_node()).error().code(),
            StatusCode::kNotFound);
}

TEST_F(SemanticsTest, S12NamesAreBytes) {
  const std::string longest(255, 'n');
  for (const std::string& name : {longest, std::string("\xFF\x01 \n")}) {
    world.tree.write(name, "x");
    EXPECT_EQ(world.failure_at("buckets/train/" + name), StatusCode::kNotFound);
  }
  publish("a@v1");
  EXPECT_EQ(names("datasets/a/v1"), (NameList{longest, "\xFF\x01 \n"}));
  std::string key(1024, 'k');
  for (std::size_t at = 200; at < key.size(); at += 200)
    key[at] = '/';
  world.put(key, "deep");
  EXPECT_EQ(content("buckets/train/" + key), "deep");
  EXPECT_EQ(world.failure_at("buckets/train/" + key + "k"), StatusCode::kNotFound);
}

TEST_F(SemanticsTest, S13PermissionsAreThoseOfTheSource) {
  fill_tree(world.tree, 2);
  publish("a@v1");
  set_alias("v1");
  world.put("d/f", "x");
  EXPECT_EQ(world.at("datasets/a/v1/large.bin").permissions, 0640);
  EXPECT_EQ(world.at("datasets/a/v1/link").permissions, 0777);
  EXPECT_EQ(world.at("datasets/a/current").permissions, 0777);
  EXPECT_EQ(world.at("datasets/a").permissions, 0555);
  EXPECT_EQ(world.at("buckets/train/d").permissions, 0555);
  EXPECT_EQ(world.at("buckets/train/d/f").permissions, 0444);
}

TEST_F(SemanticsTest, S14OwnersAreThoseOfTheExport) {
  world.tree.write("f", "x");
  std::filesystem::permissions(world.tree.path("f"), std::filesystem::perms(0640));
  publish("a@v1");
  const NodeAttributes file = world.at("datasets/a/v1/f");
  const ExportPolicy policy{.uid = 10, .gid = 20};
  const WantedAccess reading{.read = true};
  EXPECT_TRUE(check_access(file, policy, {.uid = 10, .gid = 1}, reading).ok());
  EXPECT_TRUE(check_access(file, policy, {.uid = 11, .gid = 1, .groups = {20}}, reading).ok());
  EXPECT_EQ(check_access(file, policy, {.uid = 11, .gid = 1}, reading).code(),
            StatusCode::kPermissionDenied);
  EXPECT_TRUE(check_access(file, policy, {.uid = 0, .gid = 0}, reading).ok());
  for (const std::uint32_t uid : {0u, 10u, 11u}) {
    EXPECT_EQ(check_access(file, policy, {.uid = uid, .gid = 20}, {.write = true}).code(),
              StatusCode::kUnsupported);
  }
}

TEST_F(SemanticsTest, S15TimesAreThoseOfTheSource) {
  fill_tree(world.tree, 2);
  publish("a@v1");
  const ObjectInfo info = world.put("d/f", "x");
  const NodeAttributes file = world.at("datasets/a/v1/large.bin");
  EXPECT_EQ(file.modified.time_since_epoch(), std::chrono::nanoseconds(1'234'567'890'123'456'789));
  EXPECT_EQ(world.at("buckets/train/d/f").modified,
            std::chrono::floor<std::chrono::seconds>(info.modified));
  EXPECT_EQ(world.at("buckets/train/d").modified, world.clock().wall_now());
  EXPECT_EQ(world.at("datasets/a").modified, world.clock().wall_now());
}

TEST_F(SemanticsTest, S16SizesAndTheEndOfAFile) {
  world.tree.write("f", "12345");
  publish("a@v1");
  set_alias("v1");
  world.put("f", "123");
  EXPECT_EQ(world.at("datasets/a/v1").size, 0u);
  EXPECT_EQ(world.at("buckets/train").size, 0u);
  EXPECT_EQ(world.at("datasets/a/current").size, 2u);
  for (const std::string path : {"datasets/a/v1/f", "buckets/train/f"}) {
    const NodeAttributes file = world.at(path);
    EXPECT_EQ(world.read(file.number, {file.size - 1, 100}).value().size(), 1u) << path;
    EXPECT_EQ(world.read(file.number, {file.size, 100}).value(), "") << path;
    EXPECT_EQ(world.read(file.number, {UINT64_MAX, 100}).value(), "") << path;
  }
}

TEST_F(SemanticsTest, S17NumbersSurviveARestart) {
  fill_tree(world.tree, 3);
  publish("a@v1");
  world.put("d/f", "x");
  std::map<std::string, NodeNumber> numbers;
  for (const char* path : {"", "datasets", "datasets/a", "datasets/a/v1/large.bin", "buckets",
                           "buckets/train", "buckets/train/d", "buckets/train/d/f"})
    numbers[path] = world.at(path).number;
  world.start();
  for (const auto& [path, number] : numbers)
    EXPECT_EQ(world.files().attributes(world.context, number).value().number, number) << path;
  world.start();
  for (const auto& [path, number] : numbers)
    EXPECT_EQ(world.at(path).number, number) << path;
  world.remove("d/f");
  world.put("d/f/g", "x");
  world.pass_lifetime();
  EXPECT_NE(world.at("buckets/train/d/f").number, numbers["buckets/train/d/f"]);
}

TEST_F(SemanticsTest, S18AListingIsTakenUpAnywhere) {
  for (int n = 10; n < 40; ++n) {
    world.tree.write("f" + std::to_string(n), "x");
    world.put("f" + std::to_string(n), "x");
  }
  publish("a@v1");
  for (const std::string path : {"datasets/a/v1", "buckets/train"}) {
    const NodeNumber directory = world.at(path).number;
    const NameList all = names(path);
    ASSERT_EQ(all.size(), 30u);
    EXPECT_TRUE(std::ranges::is_sorted(all));
    NameList pieced;
    std::uint64_t cookie = 0;
    const auto one = [&](const NodeEntry& entry) {
      pieced.emplace_back(entry.name);
      cookie = entry.cookie;
      return false;
    };
    for (int n = 0; n < 30; ++n) {
      ASSERT_TRUE(world.files().read_directory(world.context, directory, cookie, one).ok());
      if (n % 10 == 0) world.start();
    }
    EXPECT_EQ(pieced, all) << path;
  }
}

TEST_F(SemanticsTest, S18AListingAboveVersionsIsTakenUpWhateverComesAndGoes) {
  world.tree.write("f", "x");
  for (int n = 10; n < 60; ++n)
    publish("a@v" + std::to_string(n));
  set_alias("v10");
  const NodeNumber directory = world.at("datasets/a").number;
  NameList first;
  std::uint64_t cookie = 0;
  const auto some = [&](const NodeEntry& entry) {
    first.emplace_back(entry.name);
    cookie = entry.cookie;
    return first.size() < 25;
  };
  ASSERT_TRUE(world.files().read_directory(world.context, directory, 0, some).ok());
  const NameList all = names("datasets/a");
  ASSERT_EQ(all.size(), 51u);
  // What the listing began with, stopped at and would have ended with, but for the alias.
  NameList gone = {first[0], first[1], first[23], first[24], all[49], all[50]};
  std::erase_if(gone, [](const std::string& name) { return name == "current" || name == "v10"; });
  for (const std::string& name : gone)
    ASSERT_TRUE(world.registry.remove(world.context, ref_of("a@" + name), "old")) << name;
  for (int n = 0; n < 5; ++n)
    publish("a@new" + std::to_string(n));
  world.start();
  NameList rest;
  const auto others = [&](const NodeEntry& entry) {
    rest.emplace_back(entry.name);
    return true;
  };
  ASSERT_TRUE(world.files().read_directory(world.context, directory, cookie, others).ok());
  for (const std::string& name : all) {
    if (std::ranges::count(gone, name) > 0) continue;
    EXPECT_EQ(std::ranges::count(first, name) + std::ranges::count(rest, name), 1) << name;
  }
  for (const std::string& name : rest)
    EXPECT_EQ(std::ranges::count(first, name), 0) << name;
}

TEST_F(SemanticsTest, S19AStoreThatIsAway) {
  world.tree.write("f", "version");
  publish("a@v1");
  world.put("f", "bucket");
  world.put("unread", "x");
  const NameList datasets = names("datasets/a");
  const NameList train = names("buckets/train");
  EXPECT_EQ(content("datasets/a/v1/f"), "version");
  EXPECT_EQ(content("buckets/train/f"), "bucket");
  world.cut_off();
  world.faulty->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  world.pass_lifetime();
  EXPECT_EQ(names("datasets/a"), datasets);
  EXPECT_EQ(names("buckets/train"), train);
  EXPECT_EQ(content("datasets/a/v1/f"), "version");
  EXPECT_EQ(content("buckets/train/f"), "bucket");
  EXPECT_EQ(read_code(*open("buckets/train/unread"), {0, 1}), StatusCode::kUnavailable);
  world.put("new", "x");
  world.bring_back();
  world.faulty->set_plan(no_faults());
  world.clock().advance(std::chrono::seconds(5));
  EXPECT_EQ(names("buckets/train"), (NameList{"f", "new", "unread"}));
}

TEST_F(SemanticsTest, S19AStoreThatIsAwayAtTheStart) {
  world.patience = std::chrono::milliseconds(20);
  world.tree.write("f", "version");
  publish("group/a@v1");
  publish("group/a@v2");
  ASSERT_TRUE(world.registry.aliases().set(world.context, dataset_of("group/a"),
                                           alias_of("current"), version_of("v1")));
  EXPECT_EQ(content("datasets/group/a/v1/f"), "version");
  const NodeNumber directory = world.at("datasets/group/a").number;
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kHang}) {
    world.faulty->set_plan(random_faults(1, {{1.0, {.kind = kind}}}));
    world.start();
    EXPECT_TRUE(world.datasets().version(world.context, ref_of("group/a@v1")));
    EXPECT_EQ(content("datasets/group/a/v1/f"), "version");
    world.start();
    EXPECT_TRUE(world.files().attributes(world.context, directory)) << "as a mount asks";
    // What was never served here is not known to be absent.
    EXPECT_TRUE(is_unanswered(world.datasets().version(soon(), ref_of("group/a@v2")).error()));
    EXPECT_TRUE(is_unanswered(world.datasets().version(soon(), ref_of("group/a@current")).error()));
    EXPECT_TRUE(is_unanswered(world.files().resolve(soon(), "datasets/group/a/v2").error()));
    EXPECT_TRUE(is_unanswered(
        world.files().read_directory(soon(), directory, 0, [](const NodeEntry&) { return true; })));
  }
}

TEST_F(SemanticsTest, S19AVersionIsListedWhoseManifestCannotBeHad) {
  world.patience = std::chrono::milliseconds(1);
  world.start();
  world.tree.write("f", "version");
  publish("a@v1");
  world.tree.write("g", "so that its manifest is another");
  publish("a@v2");
  set_alias("v1");
  EXPECT_EQ(content("datasets/a/v1/f"), "version");
  const NodeNumber directory = world.at("datasets/a").number;
  std::map<std::string, NodeAttributes> listed;
  const auto list = [&] {
    listed.clear();
    const Status status =
        world.files().read_directory(soon(), directory, 0, [&](const NodeEntry& entry) {
          listed.emplace(entry.name, entry.attributes);
          return true;
        });
    EXPECT_TRUE(status.ok()) << status.to_string();
    ASSERT_EQ(listed.size(), 3u);
    EXPECT_EQ(listed.at("current").kind, NodeKind::kSymlink);
    EXPECT_EQ(listed.at("v1").kind, NodeKind::kDirectory);
    EXPECT_EQ(listed.at("v2").kind, NodeKind::kDirectory);
  };
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
    ASSERT_NO_FATAL_FAILURE(list());
    EXPECT_FALSE(at_hand.refused()) << "nobody has to wait for a list that is known";
  }
  for (const Fault::Kind kind : {Fault::Kind::kFailBefore, Fault::Kind::kHang}) {
    world.faulty->set_plan(random_faults(1, {{1.0, {.kind = kind}}}));
    world.pass_lifetime();
    ASSERT_NO_FATAL_FAILURE(list());
    EXPECT_TRUE(is_unanswered(world.files().resolve(soon(), "datasets/a/v2").error()));
  }
  world.faulty->set_plan(no_faults());
  EXPECT_EQ(world.at("datasets/a/v2").number, listed.at("v2").number);
}

TEST_F(SemanticsTest, S19AStoreThatHangs) {
  world.patience = std::chrono::milliseconds(20);
  world.start();
  world.tree.write("f", "version");
  publish("a@v1");
  set_alias("v1");
  world.put("f", "bucket");
  const NameList datasets = names("datasets/a");
  const NameList train = names("buckets/train");
  EXPECT_EQ(content("datasets/a/v1/f"), "version");
  EXPECT_EQ(content("buckets/train/f"), "bucket");
  // No request of the test has a deadline: whoever waits for the store waits for ever.
  const FaultPlan hang = random_faults(1, {{1.0, {.kind = Fault::Kind::kHang}}});
  world.broken->set_plan(hang);
  world.faulty->set_plan(hang);
  world.pass_lifetime();
  EXPECT_EQ(names("datasets/a"), datasets);
  EXPECT_EQ(names("buckets/train"), train);
  EXPECT_EQ(target(world.at("datasets/a/current").number), "v1");
  EXPECT_EQ(content("datasets/a/v1/f"), "version");
  EXPECT_EQ(content("buckets/train/f"), "bucket");
}

TEST_F(SemanticsTest, S19ABucketThatIsNotThere) {
  world.put("f", "bucket");
  const NodeNumber train = world.at("buckets/train").number;
  world.broken->set_plan([](const FaultableCall&) { return Fault{.code = StatusCode::kNotFound}; });
  const auto list = [&](NodeNumber directory) {
    return world.files().read_directory(world.context, directory, 0,
                                        [](const NodeEntry&) { return true; });
  };
  // Both front ends make EIO of it.
  EXPECT_EQ(list(train), StatusCode::kIoError);
  EXPECT_EQ(world.failure_at("buckets/train/f"), StatusCode::kIoError);
  EXPECT_TRUE(list(world.at("buckets").number).ok()) << "the others are shown";
  world.bring_back();
  EXPECT_EQ(names("buckets/train"), NameList{"f"});
}

std::string text_of_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end; ++it)
    found.insert((*it)[1]);
  return found;
}

TEST(SemanticsPage, EveryClaimHasATestAndEveryTestAClaim) {
  const char* const source = std::getenv("MILLRACE_SOURCE_DIR");
  ASSERT_NE(source, nullptr) << "MILLRACE_SOURCE_DIR is not set: run it through ctest";
  const std::filesystem::path root(source);
  const std::set<std::string> claims =
      all_matches(text_of_file(root / "docs/semantics.md"), R"(\*\*(S\d+)\*\*)");
  EXPECT_GE(claims.size(), 19u);
  std::set<std::string> shown;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "tests")) {
    if (entry.path().extension() != ".cc") continue;
    shown.merge(all_matches(text_of_file(entry.path()), R"(\nTEST\w*\(\w+,\s*(S\d+)[A-Z])"));
  }
  EXPECT_EQ(shown, claims);
}

}  // namespace
}  // namespace millrace
