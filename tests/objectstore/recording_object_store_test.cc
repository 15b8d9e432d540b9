#include "objectstore/recording_object_store.h"

#include <gtest/gtest.h>

#include "objectstore/memory_object_store.h"

namespace millrace {

TEST(RecordingObjectStore, RemembersRequestsInOrder) {
  RecordingObjectStore store(std::make_shared<MemoryObjectStore>());
  const auto context = RequestContext::background();
  ASSERT_TRUE(store.put(context, ObjectKey("a"), Slice::copy_of("0123"), {}));
  GetRequest request;
  request.key = ObjectKey("a");
  request.range = ByteRange{1, 2};
  ASSERT_TRUE(store.get(context.with_attempt(3), request));
  ASSERT_FALSE(store.head(context, ObjectKey("b")));
  const auto requests = store.requests();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].operation, StoreOperation::kPut);
  EXPECT_EQ(requests[1].operation, StoreOperation::kGetRange);
  EXPECT_EQ(requests[1].key, "a");
  EXPECT_EQ(requests[1].range, (ByteRange{1, 2}));
  EXPECT_EQ(requests[1].attempt, 3U);
  EXPECT_EQ(requests[1].outcome, StatusCode::kOk);
  EXPECT_EQ(requests[2].outcome, StatusCode::kNotFound);
  EXPECT_EQ(store.count(StoreOperation::kGetRange), 1U);
  EXPECT_EQ(store.count(), 3U);
  store.clear();
  EXPECT_EQ(store.count(), 0U);
  EXPECT_TRUE(store.requests().empty());
}

TEST(RecordingObjectStore, IsBounded) {
  RecordingObjectStore store(std::make_shared<MemoryObjectStore>(), 10);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(store.head(RequestContext::background(), ObjectKey(std::to_string(i))));
  }
  const auto requests = store.requests();
  ASSERT_EQ(requests.size(), 10U);
  EXPECT_EQ(requests.front().key, "90");
  EXPECT_EQ(requests.back().outcome, StatusCode::kNotFound);
  EXPECT_EQ(store.count(StoreOperation::kHead), 100U);
}

}  // namespace millrace
