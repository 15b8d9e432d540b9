#include "dataset/version_export.h"

#include "dataset/sample_name.h"
#include "tests/dataset/version_world.h"

namespace millrace {
namespace {

// The shards of an export, as `tar` reads them.
std::map<std::string, std::string> untar(const ScratchTree& scratch, const std::string& key,
                                         const std::string& bytes) {
  const std::string tar = scratch.path(key);
  std::filesystem::create_directories(std::filesystem::path(tar).parent_path());
  write_bytes(tar, bytes);
  const std::string out = tar + ".out";
  std::filesystem::create_directories(out);
  EXPECT_EQ(std::system(("tar -xf " + tar + " -C " + out).c_str()), 0);
  std::map<std::string, std::string> files;
  for (const auto& found : std::filesystem::recursive_directory_iterator(out)) {
    if (found.is_regular_file())
      files.emplace(found.path().lexically_relative(out), read_bytes(found.path()));
  }
  return files;
}

TEST(VersionExport, WritesShardsWithWholeSamples) {
  const ScratchTree tree;
  fill_tree(tree, 1);
  StoredVersion version(tree.root(), {.file_bytes_max = 10'000, .target_bytes = 50'000});
  const VersionReader reader = version.reader();
  MemoryObjectStore target(version.world.clock);
  BufferPool pool({});
  const auto totals = export_version(version.world.context, reader, target, pool,
                                     {.prefix = "out/", .shard_bytes = 100'000, .parallel = 3});
  ASSERT_TRUE(totals.has_value()) << totals.error().to_string();
  EXPECT_EQ(totals->files, version.manifest->totals().files);
  EXPECT_EQ(totals->left_out_symlinks, 2U);

  const ListPage page = target.list(version.world.context, {.prefix = "out/"}).value();
  EXPECT_EQ(page.objects.size(), totals->shards);
  const ScratchTree scratch;
  std::map<std::string, std::string> sample_shards;
  std::size_t files = 0;
  for (const ObjectInfo& shard : page.objects) {
    const std::string bytes(
        target.get(version.world.context, {.key = shard.key}).value().data.text());
    for (const auto& [path, content] : untar(scratch, shard.key.value(), bytes)) {
      ++files;
      EXPECT_EQ(content, read_bytes(tree.path(path)));
      const auto sample = sample_name(path);
      if (!sample) continue;
      const auto [there, added] =
          sample_shards.emplace(std::string(sample->base), shard.key.value());
      EXPECT_EQ(there->second, shard.key.value()) << path;
    }
  }
  EXPECT_EQ(files, totals->files);
  tree.set_mode("nothing", 0755);
}

TEST(VersionExport, KeepsASampleWholeThatIsLargerThanAShard) {
  const ScratchTree tree;
  tree.write("a.bin", std::string(90'000, 'a'));
  tree.write("a.cls", "1");
  tree.write("a.wav", std::string(90'000, 'w'));
  tree.write("b.bin", std::string(90'000, 'b'));
  StoredVersion version(tree.root(), {});
  const VersionReader reader = version.reader();
  MemoryObjectStore target(version.world.clock);
  BufferPool pool({});
  const auto totals =
      export_version(version.world.context, reader, target, pool, {.shard_bytes = 20'000});
  ASSERT_TRUE(totals.has_value()) << totals.error().to_string();
  ASSERT_EQ(totals->shards, 2U);
  const ScratchTree scratch;
  const std::string first(
      target.get(version.world.context, {.key = ObjectKey("00000000.tar")}).value().data.text());
  EXPECT_EQ(untar(scratch, "first", first).size(), 3U);
}

TEST(VersionExport, RefusesAPlaceWithSomethingInIt) {
  const ScratchTree tree;
  tree.write("a", "x");
  StoredVersion version(tree.root(), {});
  const VersionReader reader = version.reader();
  BufferPool pool({});
  version.world.write("out/there", "x");
  const auto refused = export_version(version.world.context, reader, *version.world.memory, pool,
                                      {.prefix = "out/"});
  EXPECT_EQ(refused.error().code(), StatusCode::kConflict);
  EXPECT_NE(refused.error().message().find("out/there"), std::string::npos);
}

TEST(VersionExport, FailsOnAChangedObject) {
  const ScratchTree tree;
  tree.write("a", std::string(1000, 'x'));
  StoredVersion version(tree.root(), {});
  version.damage(version.keys[0], 600);
  const VersionReader reader = version.reader();
  MemoryObjectStore target(version.world.clock);
  BufferPool pool({});
  const auto failed = export_version(version.world.context, reader, target, pool, {});
  EXPECT_EQ(failed.error().code(), StatusCode::kPreconditionFailed);
  EXPECT_TRUE(target.list(version.world.context, {}).value().objects.empty());
}

}  // namespace
}  // namespace millrace
