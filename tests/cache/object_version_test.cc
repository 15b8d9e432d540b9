#include "cache/object_version.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace millrace {
namespace {

ObjectDigest digest_of_parts(const std::string& store, const std::string& key,
                             const std::string& identity, std::uint64_t size) {
  return ObjectVersion(StoreId(store), ObjectKey(key), ObjectIdentity(identity), size).digest();
}

// Computed from the text of docs/formats/cache.md by another program. A change orphans every cache.
TEST(ObjectVersion, TheDigestNeverChanges) {
  EXPECT_EQ(digest_of_parts("s3://b at https://h", "a/b.jpg", "\"etag\"", 5 * kMiB + 7).to_text(),
            "8864043920a672444f0a618a75309c30");
}

TEST(ObjectVersion, EveryPartCounts) {
  std::set<std::string> digests;
  // Among them parts that read the same when put together.
  digests.insert(digest_of_parts("ab", "c", "d", 1).to_text());
  digests.insert(digest_of_parts("a", "bc", "d", 1).to_text());
  digests.insert(digest_of_parts("a", "b", "cd", 1).to_text());
  digests.insert(digest_of_parts("a", "bcd", "", 1).to_text());
  digests.insert(digest_of_parts("ab", "c", "d", 11).to_text());
  digests.insert(digest_of_parts("ab", "c", "e", 1).to_text());
  digests.insert(digest_of_parts("ab", "c", "", 1).to_text());
  EXPECT_EQ(digests.size(), 7u);
}

TEST(ObjectVersion, ChecksumsAreNoPartOfTheIdentity) {
  const auto checksums = std::make_shared<UnitChecksums>(UnitChecksums{1, 2});
  const ObjectVersion with(StoreId("s"), ObjectKey("k"), ObjectIdentity("i"), 70'000, checksums);
  const ObjectVersion without(StoreId("s"), ObjectKey("k"), ObjectIdentity("i"), 70'000);
  EXPECT_EQ(with.digest(), without.digest());
  EXPECT_EQ(without.checksums(), nullptr);
  EXPECT_EQ(*with.checksums(), *checksums);
}

}  // namespace
}  // namespace millrace
