#include "dataset/version_extract.h"

#include <sys/stat.h>

#include <cstdlib>

#include "tests/dataset/version_world.h"

namespace millrace {
namespace {

// All of a tree that a version keeps: kind, mode, time, size and content or target, by path.
std::map<std::string, std::string> tree_facts(const std::string& root) {
  std::map<std::string, std::string> facts;
  for (const auto& found : std::filesystem::recursive_directory_iterator(root)) {
    struct stat status{};
    EXPECT_EQ(::lstat(found.path().c_str(), &status), 0);
    std::string& text = facts[found.path().lexically_relative(root)];
    const bool link = S_ISLNK(status.st_mode);
    text = std::to_string(link ? S_IFLNK : status.st_mode) + " " +
           std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
    if (link) text += " " + std::filesystem::read_symlink(found.path()).string();
    if (S_ISREG(status.st_mode)) text += " " + read_bytes(found.path());
  }
  return facts;
}

void allow_removal(const ScratchTree& tree, const std::string& folder) {
  tree.set_mode(folder + "nothing", 0755);
}

TEST(VersionExtract, GivesTheTreeBack) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE(seed);
    const ScratchTree tree;
    fill_tree(tree, seed);
    const ScratchTree target;
    StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
    const VersionReader reader = version.reader({.window_bytes = 4 * kUnitBytes});
    const auto totals = extract_version(version.world.context, reader, target.path("out"),
                                        {.parallel = seed % 2 == 0 ? std::size_t{1} : 4});
    ASSERT_TRUE(totals.has_value()) << totals.error().to_string();
    EXPECT_EQ(totals->files, version.manifest->totals().files);
    EXPECT_EQ(totals->symlinks, 2U);
    EXPECT_EQ(totals->bytes, version.manifest->totals().logical_bytes);
    EXPECT_EQ(tree_facts(tree.root()), tree_facts(target.path("out")));
    const std::string diff =
        "diff -r --no-dereference " + tree.root() + " " + target.path("out") + " >&2";
    EXPECT_EQ(std::system(diff.c_str()), 0);
    allow_removal(tree, "");
    allow_removal(target, "out/");
  }
}

TEST(VersionExtract, TakesOneRequestForNeighboursInAPack) {
  const ScratchTree tree;
  for (int n = 0; n < 100; ++n)
    tree.write("d/" + std::to_string(n), "content " + std::to_string(n));
  const ScratchTree target;
  StoredVersion version(tree.root(), {});
  ASSERT_EQ(version.keys.size(), 1U);
  ASSERT_TRUE(extract_version(version.world.context, version.reader(), target.path("out"),
                              {.parallel = 1}));
  EXPECT_EQ(version.world.recording->count(StoreOperation::kGetRange), 1U);
}

TEST(VersionExtract, RefusesADirectoryThatIsNotEmpty) {
  const ScratchTree tree;
  tree.write("file", "x");
  const ScratchTree target;
  target.write("there", "before");
  StoredVersion version(tree.root(), {});
  const auto refused = extract_version(version.world.context, version.reader(), target.root(), {});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kConflict);
  EXPECT_NE(refused.error().message().find(target.root()), std::string::npos);
}

TEST(VersionExtract, FailsLoudlyOnChangedAndMissingObjects) {
  const ScratchTree tree;
  fill_tree(tree, 1);
  for (const bool remove : {false, true}) {
    const ScratchTree target;
    StoredVersion version(tree.root(), {.file_bytes_max = 200'000, .target_bytes = 400'000});
    const ObjectKey key(version.keys[1]);
    if (remove) {
      ASSERT_TRUE(version.world.memory->remove(version.world.context, std::array{key}).ok());
    } else {
      version.damage(key.value(), 5000);
    }
    const auto failed =
        extract_version(version.world.context, version.reader(), target.path("out"), {});
    ASSERT_FALSE(failed.has_value());
    EXPECT_EQ(failed.error().code(), StatusCode::kPreconditionFailed);
    EXPECT_NE(failed.error().message().find("a@v1"), std::string::npos);
    EXPECT_NE(failed.error().message().find(key.value()), std::string::npos);
  }
  allow_removal(tree, "");
}

}  // namespace
}  // namespace millrace
