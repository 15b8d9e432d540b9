#include "vfs/version_objects.h"

#include <gtest/gtest.h>

#include "tests/vfs/vfs_world.h"

namespace millrace {
namespace {

// How far ahead, and in what pieces, an object is fetched depends on it.
TEST(VersionObjects, PacksHoldManyFilesAndOtherObjectsOne) {
  VfsWorld world;
  world.tree.write("a", "hello");
  world.tree.write("b", "there");
  world.tree.write("large", publish_bytes(300'000, 1));
  ASSERT_TRUE(world.publish("d@v1"));
  const std::shared_ptr<const Manifest> manifest = world.manifest("d@v1");
  const VersionObjects objects(manifest, StoreId("memory://vfs"), world.cache(), {});
  for (const auto& [path, content] :
       {std::pair("a", ObjectContent::kManyFiles), std::pair("b", ObjectContent::kManyFiles),
        std::pair("large", ObjectContent::kOneFile)}) {
    const EntryIndex file = manifest->resolve(path).value().value();
    const auto parts = objects.parts(manifest->entry(file).value());
    ASSERT_TRUE(parts) << parts.error().to_string();
    ASSERT_EQ(parts->size(), 1u);
    EXPECT_EQ(parts->front().object.content(), content) << path;
  }
}

}  // namespace
}  // namespace millrace
