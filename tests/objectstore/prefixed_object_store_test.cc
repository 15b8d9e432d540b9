#include "objectstore/prefixed_object_store.h"

#include <gtest/gtest.h>

#include "objectstore/memory_object_store.h"

namespace millrace {

TEST(PrefixedObjectStore, KeepsToItsPartOfTheStore) {
  auto memory = std::make_shared<MemoryObjectStore>();
  PrefixedObjectStore one(memory, "one");
  PrefixedObjectStore other(memory, "one-more");
  const auto context = RequestContext::background();
  ASSERT_TRUE(one.put(context, ObjectKey("k"), Slice::copy_of("1"), {}));
  ASSERT_TRUE(other.put(context, ObjectKey("k"), Slice::copy_of("2"), {}));
  EXPECT_TRUE(memory->head(context, ObjectKey("one/k")));
  EXPECT_TRUE(memory->head(context, ObjectKey("one-more/k")));
  const auto page = one.list(context, {});
  ASSERT_TRUE(page);
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].key, ObjectKey("k"));
  EXPECT_TRUE(one.remove(context, std::vector{ObjectKey("k")}).ok());
  EXPECT_TRUE(other.head(context, ObjectKey("k")));
}

TEST(PrefixedObjectStore, AKeyTooLongBelowIsRefused) {
  PrefixedObjectStore store(std::make_shared<MemoryObjectStore>(), "p");
  const auto put = [&](std::size_t length) {
    return store.put(RequestContext::background(), ObjectKey(std::string(length, 'k')), {}, {});
  };
  EXPECT_TRUE(put(kKeyBytesMax - 2));
  EXPECT_EQ(put(kKeyBytesMax - 1).error().code(), StatusCode::kInvalidArgument);
}

TEST(PrefixedObjectStore, DescribesThePlace) {
  auto memory = std::make_shared<MemoryObjectStore>();
  auto outer = std::make_shared<PrefixedObjectStore>(memory, "a/b");
  EXPECT_EQ(outer->describe(), "memory://a/b");
  EXPECT_EQ(PrefixedObjectStore(outer, "c").describe(), "memory://a/b/c");
}

}  // namespace millrace
