#include "dataset/manifest_diff.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

std::unique_ptr<Manifest> manifest_of(const ManifestTree& tree, const std::string& path) {
  const auto built = build_tree(tree, path);
  EXPECT_TRUE(built) << built.error().to_string();
  return Manifest::open(path).value();
}

bool same_content(const NewEntry& a, const NewEntry& b) {
  return a.kind == b.kind && a.mode == b.mode && a.size == b.size && a.hash == b.hash &&
         a.symlink_target == b.symlink_target;
}

void expect_difference(const ManifestDifference& found, const ManifestTree& before,
                       const ManifestTree& after) {
  const std::string path(found.path);
  SCOPED_TRACE(path);
  EXPECT_EQ(found.before.has_value(), before.entries.contains(path));
  EXPECT_EQ(found.after.has_value(), after.entries.contains(path));
  switch (found.change) {
    case ManifestChange::kAdded:
      EXPECT_FALSE(found.before);
      break;
    case ManifestChange::kRemoved:
      EXPECT_FALSE(found.after);
      break;
    case ManifestChange::kChanged:
      ASSERT_TRUE(found.before && found.after);
      EXPECT_FALSE(same_content(before.entries.at(path), after.entries.at(path)));
      break;
  }
}

TEST(ManifestDiffTest, FindsWhatTwoRandomTreesDifferIn) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    const ManifestFolder folder;
    std::mt19937_64 random(seed);
    const ManifestTree before = random_tree(seed, 600);
    ManifestTree after = before;
    const ManifestTree fresh = random_tree(seed + 100, 100);
    std::vector<std::string> paths;
    for (const auto& [path, entry] : before.entries)
      paths.push_back(path);
    for (const std::string& path : paths) {
      NewEntry& entry = after.entries.at(path);
      const std::uint64_t what = random() % 20;
      if (what == 0 && entry.kind != EntryKind::kDirectory) after.entries.erase(path);
      if (what == 1) entry.mode = entry.mode == 0700 ? 0600 : 0700;
      if (what == 2 && entry.kind == EntryKind::kSymlink) entry.symlink_target[0] ^= 1;
      if (what == 3) entry.mtime_ns += 1;  // Does not count.
    }
    for (const auto& [path, entry] : fresh.entries) {
      // Only what has no extents: objects are numbered otherwise there.
      if (entry.extents.empty() && !after.entries.contains(path)) {
        bool below_file = false;
        for (std::string_view at = path; !at.empty(); at = entry_parent(at)) {
          const auto found = after.entries.find(std::string(at));
          below_file |= found != after.entries.end() && found->second.kind != EntryKind::kDirectory;
        }
        if (!below_file) after.add(entry);
      }
    }
    std::size_t differences = 0;
    ManifestDiffTotals wanted;
    const auto add = [&](ManifestDiffTotals::Count& count, const NewEntry& entry) {
      ++count.entries;
      count.bytes += entry.size;
    };
    for (const auto& [path, entry] : before.entries) {
      const auto other = after.entries.find(path);
      if (other == after.entries.end()) {
        add(wanted.removed, entry);
      } else if (!same_content(entry, other->second)) {
        add(wanted.changed, other->second);
      }
    }
    for (const auto& [path, entry] : after.entries) {
      if (!before.entries.contains(path)) add(wanted.added, entry);
    }
    ASSERT_GT(wanted.added.entries * wanted.removed.entries * wanted.changed.entries, 0);
    const auto first = manifest_of(before, folder.file("before"));
    const auto second = manifest_of(after, folder.file("after"));
    const auto totals = diff_manifests(*first, *second, [&](const ManifestDifference& difference) {
      expect_difference(difference, before, after);
      ++differences;
      return Status();
    });
    ASSERT_TRUE(totals) << totals.error().to_string();
    EXPECT_EQ(*totals, wanted);
    EXPECT_EQ(differences, wanted.added.entries + wanted.removed.entries + wanted.changed.entries);
    const auto none = diff_manifests(*first, *first, [](const ManifestDifference&) {
      return Status(StatusCode::kInternal, "no difference was expected");
    });
    EXPECT_TRUE(none && *none == ManifestDiffTotals{});
  }
}

TEST(ManifestDiffTest, EndsWithWhatTheSinkSays) {
  const ManifestFolder folder;
  const auto one = manifest_of(wide_tree(10), folder.file("1"));
  const auto two = manifest_of(wide_tree(20), folder.file("2"));
  int calls = 0;
  const auto totals = diff_manifests(*one, *two, [&calls](const ManifestDifference&) {
    ++calls;
    return Status(StatusCode::kCancelled, "enough");
  });
  ASSERT_FALSE(totals);
  EXPECT_TRUE(totals.error() == StatusCode::kCancelled);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace millrace
