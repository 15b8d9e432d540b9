#include "vfs/version_objects.h"

#include <gtest/gtest.h>

#include "base/at_hand.h"
#include "dataset/registration.h"
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

// A store may be a directory on a machine that does not answer.
TEST(VersionObjects, AStoreThatIsKnownIsNotLookedUpByWhoMustNotWait) {
  VfsWorld world;
  for (const char* key : {"in/a", "in/b"})
    ASSERT_TRUE(world.other->put(world.context, ObjectKey(key), Slice::copy_of("hello"), {}));
  ASSERT_TRUE(
      register_version(world.context, world.environment("state"),
                       {.prefix = "in/", .store = world.other.get(), .store_url = "memory://other"},
                       VersionRef::parse("d@v1").value(), {}));
  const std::shared_ptr<const Manifest> manifest = world.manifest("d@v1");
  int lookups = 0;
  bool is_away = false;
  const VersionObjects objects(manifest, StoreId("memory://vfs"), world.cache(),
                               [&](const std::string&) -> Result<std::shared_ptr<ObjectStore>> {
                                 ++lookups;
                                 if (is_away) return failure(StatusCode::kUnavailable, "away");
                                 return world.other;
                               });
  const ManifestEntry file = manifest->entry(manifest->resolve("a").value().value()).value();
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
    EXPECT_FALSE(objects.parts(file));
    EXPECT_TRUE(at_hand.refused());
  }
  EXPECT_EQ(lookups, 0);
  const auto parts = objects.parts(file);
  ASSERT_TRUE(parts) << parts.error().to_string();
  EXPECT_EQ(lookups, 1);
  {
    const AtHandOnly at_hand(AtHandOnly::Reach::kDisk);
    const auto again = objects.parts(file);
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(again->front().object.store(), parts->front().object.store());
    EXPECT_EQ(lookups, 1);
  }
  is_away = true;
  const auto away = objects.parts(manifest->entry(manifest->resolve("b").value().value()).value());
  ASSERT_TRUE(away) << away.error().to_string();
  EXPECT_EQ(away->front().object.store(), parts->front().object.store()) << "for what is cached";
  EXPECT_EQ(lookups, 2);
}

}  // namespace
}  // namespace millrace
