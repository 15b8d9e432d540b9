// Manifests of random trees against the trees themselves, however they were built.
#include <algorithm>
#include <array>
#include <map>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dataset/manifest.h"
#include "dataset/manifest_builder.h"
#include "tests/dataset/manifest_tree.h"

namespace millrace {
namespace {

#ifdef MILLRACE_SANITIZED
constexpr std::uint64_t kModelSeeds = 4;
#else
constexpr std::uint64_t kModelSeeds = 20;
#endif

ManifestTotals totals_of(const ManifestTree& tree) {
  ManifestTotals totals;
  for (const ManifestTree::Object& object : tree.objects)
    totals.stored_bytes += object.size;
  for (const auto& [path, entry] : tree.entries) {
    totals.files += entry.kind == EntryKind::kFile ? 1 : 0;
    totals.directories += entry.kind == EntryKind::kDirectory ? 1 : 0;
    totals.symlinks += entry.kind == EntryKind::kSymlink ? 1 : 0;
    totals.logical_bytes += entry.size;
    if (!entry.extents.empty() && entry.extents[0].object == kOwnObject) {
      totals.stored_bytes += entry.size;
    }
  }
  return totals;
}

TEST(ManifestModelTest, SaysWhatTheTreeHolds) {
  for (std::uint64_t seed = 1; seed <= kModelSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ManifestFolder folder;
    const ManifestTree tree = random_tree(seed, seed % 3 == 0 ? 3000 : 300);
    const auto summary = build_tree(tree, folder.file("m"), seed);
    ASSERT_TRUE(summary) << summary.error().to_string();
    EXPECT_EQ(folder.names(), std::vector<std::string>{"m"});
    const auto manifest = Manifest::open(folder.file("m"));
    ASSERT_TRUE(manifest) << manifest.error().to_string();
    EXPECT_EQ((*manifest)->content_digest(), summary->content_digest);
    EXPECT_EQ((*manifest)->layout_digest().value(), summary->layout_digest);
    EXPECT_EQ(sha256(as_bytes(read_bytes(folder.file("m")))), summary->layout_digest);
    EXPECT_EQ((*manifest)->totals(), totals_of(tree));
    expect_tree(**manifest, tree);
    if (HasFailure()) return;
  }
}

TEST(ManifestModelTest, AnyOrderAnySpillAndSortedGiveTheSameFile) {
  for (std::uint64_t seed = 1; seed <= kModelSeeds / 2; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const ManifestFolder folder;
    const ManifestTree tree = random_tree(seed, 2000);
    const auto sorted = build_tree(tree, folder.file("sorted"), 0, TreeOrder::kSorted);
    ASSERT_TRUE(sorted) << sorted.error().to_string();
    for (std::uint64_t shuffle = 0; shuffle < 3; ++shuffle) {
      const std::size_t run_bytes = shuffle == 0 ? 64 * kMiB : shuffle == 1 ? 16 * kKiB : 1;
      const auto built =
          build_tree(tree, folder.file("m"), seed + shuffle, TreeOrder::kShuffled, run_bytes);
      ASSERT_TRUE(built) << built.error().to_string();
      EXPECT_EQ(built->content_digest, sorted->content_digest);
      EXPECT_TRUE(read_bytes(folder.file("sorted")) == read_bytes(folder.file("m")));
      EXPECT_EQ(built->layout_digest, sorted->layout_digest);
    }
  }
}

TEST(ManifestModelTest, ContentDigestKnowsContentAndNothingElse) {
  const ManifestFolder folder;
  ManifestTree tree = random_tree(7, 200);
  const auto digest = [&folder](const ManifestTree& of) {
    return build_tree(of, folder.file("m")).value().content_digest;
  };
  const Sha256Digest before = digest(tree);
  const auto file = std::ranges::find_if(tree.entries, [](const auto& item) {
    return item.second.extents.size() == 1 && item.second.extents[0].object != kOwnObject;
  });
  ASSERT_NE(file, tree.entries.end());
  NewEntry& entry = file->second;
  const NewEntry original = entry;

  entry.mtime_ns += 1;
  EXPECT_EQ(digest(tree), before);
  tree.objects.push_back({.key = "other", .identity = "x", .size = entry.size, .checksums = {}});
  entry.extents[0].object = static_cast<std::uint32_t>(tree.objects.size() - 1);
  entry.extents[0].offset = 0;
  EXPECT_EQ(digest(tree), before);
  tree.prefix += "elsewhere/";
  EXPECT_EQ(digest(tree), before);

  entry.mode = original.mode ? std::nullopt : std::optional<std::uint16_t>(0);
  EXPECT_NE(digest(tree), before);
  entry.mode = original.mode;
  entry.hash.bytes[5] ^= std::byte{1};
  EXPECT_NE(digest(tree), before);
  entry.hash = original.hash;
  EXPECT_EQ(digest(tree), before);
  tree.add({.path = "one more", .kind = EntryKind::kSymlink, .symlink_target = "a"});
  const Sha256Digest with_link = digest(tree);
  EXPECT_NE(with_link, before);
  tree.entries["one more"].symlink_target = "b";
  EXPECT_NE(digest(tree), with_link);
}

TEST(ManifestModelTest, FindsEveryoneInAWideDirectory) {
  const ManifestFolder folder;
  const ManifestTree tree = wide_tree(20'000);
  ASSERT_TRUE(build_tree(tree, folder.file("m")));
  const auto manifest = Manifest::open(folder.file("m")).value();
  const EntryIndex directory = manifest->find(0, "d").value().value();
  for (const auto& [path, entry] : tree.entries) {
    if (entry.kind != EntryKind::kFile) continue;
    const std::string name(entry_base(path));
    const auto found = manifest->find(directory, name);
    ASSERT_TRUE(found && *found) << path;
    ASSERT_EQ(manifest->name(manifest->entry(**found).value()).value(), name);
    ASSERT_EQ(manifest->find(directory, name + "x").value(), std::nullopt);
  }
  EXPECT_EQ(manifest->resolve("d/").value(), std::nullopt);
  EXPECT_EQ(manifest->resolve("/d").value(), std::nullopt);
  EXPECT_EQ(manifest->resolve("d//x").value(), std::nullopt);
  EXPECT_EQ(manifest->resolve("d/n01440764_000000.JPEG/x").value(), std::nullopt);
  EXPECT_EQ(manifest->resolve("").value(), Manifest::root());
  EXPECT_TRUE(manifest->entry(manifest->entries()).error() == StatusCode::kNotFound);
}

TEST(ManifestModelTest, FindsNamesOfOneHash) {
  // Two names of one length and hash, found by trying. Any names made of the two have one hash too.
  std::map<std::uint32_t, std::string> seen;
  std::mt19937_64 random(1);
  std::array<std::string, 2> pair;
  while (pair[0].empty()) {
    const std::string name = fmt::format("{:016x}", random());
    const auto [at, fresh] = seen.emplace(name_hash(name), name);
    if (!fresh) pair = {at->second, name};
  }
  const ManifestFolder folder;
  ManifestTree tree = wide_tree(50);
  for (unsigned choice = 0; choice < 64; ++choice) {
    std::string name;
    for (unsigned part = 0; part < 6; ++part)
      name += pair[choice >> part & 1];
    ASSERT_EQ(name_hash(name),
              name_hash(pair[0] + pair[0] + pair[0] + pair[0] + pair[0] + pair[0]));
    // One that is not there has the hash of those that are.
    if (choice != 21) tree.add({.path = "d/" + name, .hash = {}});
  }
  ASSERT_TRUE(build_tree(tree, folder.file("m")));
  const auto manifest = Manifest::open(folder.file("m")).value();
  expect_tree(*manifest, tree);
  std::string absent;
  for (unsigned part = 0; part < 6; ++part)
    absent += pair[21U >> part & 1];
  EXPECT_EQ(manifest->resolve("d/" + absent).value(), std::nullopt);
}

}  // namespace
}  // namespace millrace
