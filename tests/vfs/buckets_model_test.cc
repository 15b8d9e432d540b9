// Random trees in a store against a std::map, through the whole tree. Prints its seed on failure.
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/log.h"
#include "tests/vfs/buckets_world.h"

namespace millrace {
namespace {

// What the keys of a store mean, said as simply as possible.
class BucketModel {
 public:
  std::map<std::string, std::string> objects;

  bool is_directory(const std::string& path) const {
    const auto next = objects.lower_bound(path + "/");
    return next != objects.end() && next->first.starts_with(path + "/");
  }
  bool is_file(const std::string& path) const {
    return objects.contains(path) && !path.ends_with('/') && !is_directory(path);
  }
  // The names in a directory ("" or "a/"), those of directories with a '/' behind.
  std::set<std::string> children(const std::string& directory) const {
    std::set<std::string> names;
    for (const auto& [key, content] : objects) {
      if (!key.starts_with(directory)) continue;
      const std::string rest = key.substr(directory.size());
      const std::string name = rest.substr(0, rest.find('/'));
      if (name.empty() || name == "." || name == "..") continue;
      if (rest.find('/') != std::string::npos) {
        names.insert(name + "/");
      } else if (!is_directory(directory + name)) {
        names.insert(name);
      }
    }
    return names;
  }
};

class BucketsModelRun {
 public:
  explicit BucketsModelRun(std::uint64_t seed)
      : random_(seed), world_({.page_entries_max = static_cast<std::uint32_t>(1 + pick(7))}) {}

  void run() {
    for (int round = 0; round < 12; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      for (std::uint64_t changes = pick(12) + 1; changes > 0; --changes)
        change();
      world_.pass_lifetime();
      if (pick(4) == 0) world_.start();
      if (pick(2) == 0) look_up_any();  // Asked one by one, before listings tell.
      check_directory("");
      look_up_any();
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  std::uint64_t pick(std::uint64_t below) { return random_() % below; }

  // Few letters, so that names are beginnings of others, files become directories, and the bytes
  // around '/' meet it.
  std::string any_key() {
    std::string key;
    for (std::uint64_t parts = 1 + pick(3); parts > 0; --parts) {
      for (std::uint64_t letters = pick(20) == 0 ? 0 : 1 + pick(2); letters > 0; --letters)
        key += "ab-.0"[pick(5)];
      if (parts > 1 || pick(15) == 0) key += '/';
    }
    return key.empty() ? "a" : key;
  }

  void change() {
    if (!model_.objects.empty() && pick(3) == 0) {
      const auto gone = std::next(model_.objects.begin(),
                                  static_cast<std::ptrdiff_t>(pick(model_.objects.size())));
      world_.remove(gone->first);
      model_.objects.erase(gone);
      return;
    }
    const std::string key = any_key();
    const std::string content = key.ends_with('/') ? "" : std::to_string(random_());
    world_.put(key, content);
    model_.objects[key] = content;
  }

  Result<NodeAttributes> resolve(const std::string& path) {
    return world_.files().resolve(world_.context, "buckets/train/" + path);
  }

  void look_up_any() {
    for (int n = 0; n < 10; ++n) {
      const std::string key = any_key();
      if (key.ends_with('/') || key.starts_with('/') || key.find("//") != std::string::npos ||
          has_dots(key)) {
        continue;
      }
      const Result<NodeAttributes> found = resolve(key);
      if (model_.is_directory(key)) {
        ASSERT_TRUE(found) << key;
        EXPECT_EQ(found->kind, NodeKind::kDirectory) << key;
      } else if (model_.is_file(key)) {
        ASSERT_TRUE(found) << key << ": " << found.error().to_string();
        EXPECT_EQ(found->kind, NodeKind::kFile) << key;
        EXPECT_EQ(found->size, model_.objects.at(key).size()) << key;
      } else {
        ASSERT_FALSE(found) << key;
        // A file where a directory is wanted cannot be looked into.
        EXPECT_TRUE(found.error() == StatusCode::kNotFound ||
                    found.error() == StatusCode::kInvalidArgument)
            << found.error().to_string();
      }
    }
  }

  static bool has_dots(const std::string& key) {
    const std::string framed = "/" + key + "/";
    return framed.find("/./") != std::string::npos || framed.find("/../") != std::string::npos;
  }

  struct Shown {
    std::string text;
    NodeAttributes attributes;
    std::uint64_t cookie;
  };
  std::vector<Shown> list(NodeNumber directory, std::uint64_t cookie, std::size_t entries_max) {
    std::vector<Shown> shown;
    const Status status = world_.files().read_directory(
        world_.context, directory, cookie, [&](const NodeEntry& entry) {
          const bool is_directory = entry.attributes.kind == NodeKind::kDirectory;
          shown.push_back({std::string(entry.name) + (is_directory ? "/" : ""), entry.attributes,
                           entry.cookie});
          return shown.size() < entries_max;
        });
    EXPECT_TRUE(status.ok()) << status.to_string();
    return shown;
  }

  void check_directory(const std::string& path) {
    SCOPED_TRACE("directory '" + path + "'");
    const Result<NodeAttributes> directory = resolve(path);
    ASSERT_TRUE(directory) << directory.error().to_string();
    const std::set<std::string> expected = model_.children(path);
    const std::vector<Shown> all = list(directory->number, 0, SIZE_MAX);
    ASSERT_EQ(texts(all), std::vector<std::string>(expected.begin(), expected.end()));
    for (std::size_t n = 0; n < all.size(); ++n) {
      const std::size_t part = 1 + pick(3);
      const std::vector<Shown> rest = list(directory->number, all[n].cookie, part);
      const std::size_t end = std::min(n + 1 + part, all.size());
      EXPECT_EQ(texts(rest), texts({all.begin() + static_cast<std::ptrdiff_t>(n) + 1,
                                    all.begin() + static_cast<std::ptrdiff_t>(end)}))
          << "behind " << all[n].text;
      const std::string child = path + all[n].text;
      EXPECT_EQ(world_.files().parent(world_.context, all[n].attributes.number).value(),
                directory->number);
      EXPECT_EQ(world_.files().attributes(world_.context, all[n].attributes.number).value(),
                all[n].attributes);
      if (child.ends_with('/')) {
        check_directory(child);
      } else {
        EXPECT_EQ(world_.read(all[n].attributes.number, {0, 100}).value_or("unreadable"),
                  model_.objects.at(child))
            << child;
      }
    }
  }

  static std::vector<std::string> texts(const std::vector<Shown>& shown) {
    std::vector<std::string> texts;
    for (const Shown& entry : shown)
      texts.push_back(entry.text);
    return texts;
  }

  std::mt19937_64 random_;
  BucketsWorld world_;
  BucketModel model_;
};

TEST(BucketsModelTest, TheTreeIsWhatTheKeysMean) {
  LogCapture quiet;
  const std::uint64_t first = std::random_device{}();
  for (std::uint64_t seed = first; seed < first + 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    BucketsModelRun(seed).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace millrace
