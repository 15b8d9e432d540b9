// Objects written in pieces.

#include <chrono>
#include <latch>
#include <thread>

#include "tests/objectstore/contract_suite.h"

namespace millrace {

TEST_P(ObjectStoreContract, UploadsOfManySizes) {
  const std::size_t part = traits().part_bytes;
  int number = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, part - 1, part, part + 1, 3 * part + part / 2}) {
    SCOPED_TRACE(size);
    const std::string bytes = pattern(size, size);
    const ObjectKey k = key("upload-" + std::to_string(number++));
    auto info = upload(k, bytes, part / 3 + 1);
    ASSERT_TRUE(info) << info.error().to_string();
    EXPECT_EQ(info->size, size);
    EXPECT_EQ(info->key, k);
    auto got = store().get(context(), {.key = k});
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_TRUE(got->data.text() == bytes) << "other bytes than were written";
    EXPECT_EQ(got->info.identity, info->identity);
    if (size > 2 * part) {
      EXPECT_TRUE(must_read(k, ByteRange{part - 5, 10}) == bytes.substr(part - 5, 10));
    }
  }
}

TEST_P(ObjectStoreContract, PiecesMayBeOfAnySize) {
  const std::string bytes = pattern(2 * traits().part_bytes + 777, 5);
  for (const std::size_t piece : {std::size_t{64 * 1024 + 1}, bytes.size()}) {
    auto info = upload(key("pieces"), bytes, piece);
    ASSERT_TRUE(info) << info.error().to_string();
    EXPECT_TRUE(must_read(key("pieces")) == bytes) << "pieces of " << piece;
  }
}

TEST_P(ObjectStoreContract, AnUploadIsInvisibleUntilItIsFinished) {
  must_put(key("u"), "old");
  auto upload = store().start_upload(context(), key("u"), {});
  ASSERT_TRUE(upload) << upload.error().to_string();
  ASSERT_TRUE((*upload)->write(context(), Slice::copy_of("new")).ok());
  EXPECT_EQ(must_read(key("u")), "old");
  EXPECT_EQ(list_all({.prefix = prefix()}).objects.size(), 1U) << "no temporary name in a list";
  auto info = (*upload)->finish(context());
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(must_read(key("u")), "new");
}

TEST_P(ObjectStoreContract, AbortedAndAbandonedUploadsLeaveNothing) {
  const std::string bytes = pattern(traits().part_bytes + 10, 1);
  {
    auto aborted = store().start_upload(context(), key("aborted"), {});
    ASSERT_TRUE(aborted) << aborted.error().to_string();
    ASSERT_TRUE((*aborted)->write(context(), Slice::copy_of(bytes)).ok());
    const Status status = (*aborted)->abort(context());
    EXPECT_TRUE(status.ok()) << status.to_string();
    EXPECT_FALSE((*aborted)->finish(context())) << "it can only be aborted";
    auto abandoned = store().start_upload(context(), key("abandoned"), {});
    ASSERT_TRUE(abandoned) << abandoned.error().to_string();
    ASSERT_TRUE((*abandoned)->write(context(), Slice::copy_of(bytes)).ok());
  }
  EXPECT_EQ(head_code(key("aborted")), StatusCode::kNotFound);
  EXPECT_EQ(head_code(key("abandoned")), StatusCode::kNotFound);
  EXPECT_TRUE(list_all({.prefix = prefix()}).objects.empty());
}

TEST_P(ObjectStoreContract, UploadMetadata) {
  if (!traits().metadata) GTEST_SKIP();
  const ObjectMetadata metadata = {{"kind", "upload"}};
  ASSERT_TRUE(upload(key("m"), "abc", 2, {.metadata = metadata}));
  auto info = store().head(context(), key("m"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->metadata, metadata);
}

TEST_P(ObjectStoreContract, ConditionalUploads) {
  if (!traits().conditional_upload) GTEST_SKIP();
  // Large enough to be sent in parts: stores treat those differently.
  const std::string bytes = pattern(traits().part_bytes + 1, 9);
  auto first = upload(key("c"), bytes, bytes.size(), {.condition = WriteCondition::if_absent()});
  ASSERT_TRUE(first) << first.error().to_string();
  for (const std::string& other : {std::string("small"), pattern(traits().part_bytes + 2, 10)}) {
    auto refused =
        upload(key("c"), other, other.size(), {.condition = WriteCondition::if_absent()});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), StatusCode::kPreconditionFailed)
        << refused.error().to_string();
  }
  EXPECT_TRUE(must_read(key("c")) == bytes);
  if (!traits().replace_if_identity) return;
  auto replaced =
      upload(key("c"), "replaced", 3, {.condition = WriteCondition::if_identity(first->identity)});
  ASSERT_TRUE(replaced) << replaced.error().to_string();
  auto stale = upload(key("c"), bytes, bytes.size(),
                      {.condition = WriteCondition::if_identity(first->identity)});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), StatusCode::kPreconditionFailed) << stale.error().to_string();
  EXPECT_EQ(must_read(key("c")), "replaced");
}

TEST_P(ObjectStoreContract, AnUploadObeysItsContext) {
  auto upload = store().start_upload(context(), key("u"), {});
  ASSERT_TRUE(upload) << upload.error().to_string();
  ASSERT_TRUE((*upload)->write(context(), Slice::copy_of("x")).ok());
  const RequestContext late(system_clock().now() - std::chrono::seconds(1), "contract");
  auto info = (*upload)->finish(late);
  ASSERT_FALSE(info);
  EXPECT_EQ(info.error().code(), StatusCode::kDeadlineExceeded) << info.error().to_string();
  EXPECT_TRUE((*upload)->abort(context()).ok());
  EXPECT_EQ(head_code(key("u")), StatusCode::kNotFound);
}

TEST_P(ObjectStoreContract, UploadsSideBySideDoNotMix) {
  constexpr int kUploads = 4;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kUploads; ++i) {
    threads.emplace_back([&, i] {
      const std::string bytes = pattern(traits().part_bytes + 100 * i, 100 + i);
      auto info = upload(key("u" + std::to_string(i)), bytes, 100'003);
      ASSERT_TRUE(info) << info.error().to_string();
      EXPECT_TRUE(must_read(key("u" + std::to_string(i))) == bytes);
    });
  }
  threads.clear();
}

}  // namespace millrace
