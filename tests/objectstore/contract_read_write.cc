// Whole objects, ranges, identities, metadata, copy and remove.

#include <array>

#include "tests/objectstore/contract_suite.h"

namespace millrace {

TEST_P(ObjectStoreContract, PutThenGetGivesTheBytes) {
  const ObjectKey a = key("a");
  const ObjectInfo written = must_put(a, "hello");
  auto got = store().get(context(), {.key = a});
  ASSERT_TRUE(got) << got.error().to_string();
  EXPECT_EQ(got->data.text(), "hello");
  EXPECT_EQ(got->info.size, 5U);
  EXPECT_EQ(got->info.identity, written.identity);
  EXPECT_EQ(got->info.key, a);
}

TEST_P(ObjectStoreContract, BinaryBytesComeBackAsTheyWent) {
  const std::string bytes = pattern(300'000, 7);
  must_put(key("binary"), bytes);
  EXPECT_EQ(must_read(key("binary")), bytes);
}

TEST_P(ObjectStoreContract, PutReplacesWhole) {
  const ObjectInfo first = must_put(key("a"), "a longer first version");
  const ObjectInfo second = must_put(key("a"), "second");
  EXPECT_NE(first.identity, second.identity);
  EXPECT_EQ(must_read(key("a")), "second");
}

TEST_P(ObjectStoreContract, ZeroByteObject) {
  must_put(key("empty"), "");
  EXPECT_EQ(must_read(key("empty")), "");
  auto info = store().head(context(), key("empty"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->size, 0U);
  EXPECT_EQ(read(key("empty"), ByteRange{0, 1}).error().code(), StatusCode::kInvalidArgument);
}

TEST_P(ObjectStoreContract, MissingObjectIsNotFound) {
  EXPECT_EQ(read(key("no")).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(read(key("no"), ByteRange{0, 4}).error().code(), StatusCode::kNotFound);
  EXPECT_EQ(head_code(key("no")), StatusCode::kNotFound);
  auto got = store().get(context(), {.key = key("no"), .identity = ObjectIdentity("\"x\"")});
  EXPECT_EQ(got.error().code(), StatusCode::kNotFound);
}

TEST_P(ObjectStoreContract, RangesAreExactAndCutAtTheEnd) {
  const std::string bytes = pattern(10'000, 3);
  must_put(key("r"), bytes);
  struct Case {
    ByteRange range;
    std::size_t length;
  };
  for (const auto& [range, length] :
       {Case{{0, 1}, 1}, Case{{0, 10'000}, 10'000}, Case{{5'000, 100}, 100}, Case{{9'999, 1}, 1},
        Case{{9'000, 1'000}, 1'000}, Case{{9'000, 1'001}, 1'000}, Case{{0, 1 << 20}, 10'000},
        Case{{9'999, UINT64_MAX}, 1}}) {
    auto got = store().get(context(), {.key = key("r"), .range = range});
    ASSERT_TRUE(got) << range.offset << "+" << range.length << ": " << got.error().to_string();
    EXPECT_EQ(got->data.text(), bytes.substr(range.offset, length));
    EXPECT_EQ(got->data.size(), length) << range.offset << "+" << range.length;
    EXPECT_EQ(got->info.size, bytes.size()) << "the info is that of the whole object";
  }
}

TEST_P(ObjectStoreContract, RangesThatHoldNothingAreRefused) {
  must_put(key("r"), "0123456789");
  for (const ByteRange range : {ByteRange{10, 1}, ByteRange{11, 5}, ByteRange{1'000'000, 1},
                                ByteRange{0, 0}, ByteRange{4, 0}}) {
    auto got = read(key("r"), range);
    ASSERT_FALSE(got) << range.offset << "+" << range.length;
    EXPECT_EQ(got.error().code(), StatusCode::kInvalidArgument) << got.error().to_string();
  }
}

TEST_P(ObjectStoreContract, WholeObjectLargerThanPlannedIsRefused) {
  must_put(key("big"), std::string(1'001, 'x'));
  auto refused = store().get(context(), {.key = key("big"), .bytes_max = 1'000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
  auto taken = store().get(context(), {.key = key("big"), .bytes_max = 1'001});
  EXPECT_TRUE(taken) << taken.error().to_string();
}

TEST_P(ObjectStoreContract, GetOfAnIdentityFailsOnceTheObjectChanged) {
  const ObjectInfo first = must_put(key("a"), "one");
  auto same = store().get(context(), {.key = key("a"), .identity = first.identity});
  ASSERT_TRUE(same) << same.error().to_string();
  must_put(key("a"), "two!");
  for (const std::optional<ByteRange> range : {std::optional<ByteRange>(), {{0, 2}}}) {
    auto stale =
        store().get(context(), {.key = key("a"), .range = range, .identity = first.identity});
    ASSERT_FALSE(stale);
    EXPECT_EQ(stale.error().code(), StatusCode::kPreconditionFailed) << stale.error().to_string();
  }
}

TEST_P(ObjectStoreContract, HeadAgreesWithPutAndList) {
  const ObjectInfo written = must_put(key("h"), "12345");
  auto info = store().head(context(), key("h"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->identity, written.identity);
  EXPECT_EQ(info->size, 5U);
  EXPECT_NE(info->modified, WallTime{});
  const ListPage page = list_all({.prefix = prefix()});
  ASSERT_EQ(page.objects.size(), 1U);
  EXPECT_EQ(page.objects[0].key, key("h"));
  EXPECT_EQ(page.objects[0].size, 5U);
  EXPECT_EQ(page.objects[0].identity, written.identity);
}

TEST_P(ObjectStoreContract, MetadataComesBackFromHead) {
  if (!traits().metadata) GTEST_SKIP();
  const ObjectMetadata metadata = {{"origin", "web crawl; v=2, \"quoted\" 100%"},
                                   {"x-1", "a"},
                                   {"long", std::string(1'500, 'v')}};
  must_put(key("m"), "data", {.metadata = metadata});
  auto info = store().head(context(), key("m"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->metadata, metadata);
  must_put(key("m"), "data again");
  EXPECT_TRUE(store().head(context(), key("m"))->metadata.empty()) << "a put replaces it";
}

TEST_P(ObjectStoreContract, BadMetadataIsRefusedBeforeAnythingIsStored) {
  for (const ObjectMetadata& metadata :
       {ObjectMetadata{{"Upper", "a"}}, ObjectMetadata{{"", "a"}}, ObjectMetadata{{"a b", "a"}},
        ObjectMetadata{{"nl", "a\r\nx-amz-acl: public"}}, ObjectMetadata{{"u", "\xC3\xA4"}},
        ObjectMetadata{{"n", std::string(2'048, 'v')}}}) {
    auto info = put(key("bad"), "x", {.metadata = metadata});
    ASSERT_FALSE(info);
    EXPECT_EQ(info.error().code(), StatusCode::kInvalidArgument);
    EXPECT_FALSE(store().start_upload(context(), key("bad"), {.metadata = metadata}));
  }
  EXPECT_EQ(head_code(key("bad")), StatusCode::kNotFound);
}

TEST_P(ObjectStoreContract, CopyTakesBytesAndMetadata) {
  PutOptions options;
  if (traits().metadata) options.metadata = {{"a", "b"}};
  const ObjectInfo source = must_put(key("from"), "copied bytes", options);
  auto copied = store().copy(context(), source, key("to"));
  ASSERT_TRUE(copied) << copied.error().to_string();
  EXPECT_EQ(copied->key, key("to"));
  EXPECT_EQ(must_read(key("to")), "copied bytes");
  auto info = store().head(context(), key("to"));
  ASSERT_TRUE(info);
  EXPECT_EQ(info->metadata, options.metadata);
  EXPECT_EQ(info->identity, copied->identity);
  EXPECT_EQ(must_read(key("from")), "copied bytes");
}

TEST_P(ObjectStoreContract, CopyOfWhatIsGoneOrChangedFails) {
  const ObjectInfo source = must_put(key("from"), "v1");
  must_put(key("from"), "version 2");
  auto stale = store().copy(context(), source, key("to"));
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), StatusCode::kPreconditionFailed) << stale.error().to_string();
  auto absent = store().copy(context(), ObjectInfo{.key = key("nothing")}, key("to"));
  ASSERT_FALSE(absent);
  EXPECT_EQ(absent.error().code(), StatusCode::kNotFound) << absent.error().to_string();
  EXPECT_EQ(head_code(key("to")), StatusCode::kNotFound);
  auto any = store().copy(context(), ObjectInfo{.key = key("from")}, key("to"));
  ASSERT_TRUE(any) << any.error().to_string();
  EXPECT_EQ(must_read(key("to")), "version 2");
}

TEST_P(ObjectStoreContract, RemoveTakesManyKeysAndAbsentOnes) {
  must_put(key("a"), "1");
  must_put(key("b"), "2");
  must_put(key("keep"), "3");
  std::vector<ObjectKey> keys = {key("a"), key("never-there"), key("b")};
  // More than any store takes in one request.
  for (int i = 0; i < 1'100; ++i)
    keys.push_back(key("absent-" + std::to_string(i)));
  for (int repeat = 0; repeat < 2; ++repeat) {
    const Status status = store().remove(context(), keys);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }
  EXPECT_EQ(head_code(key("a")), StatusCode::kNotFound);
  EXPECT_EQ(head_code(key("b")), StatusCode::kNotFound);
  EXPECT_EQ(must_read(key("keep")), "3");
  EXPECT_TRUE(store().remove(context(), {}).ok());
}

TEST_P(ObjectStoreContract, BadKeysAreRefused) {
  for (const std::string& bad : {std::string(), std::string(1'025, 'k'), std::string("a\0b", 3),
                                 std::string("\xFF\xFE"), std::string("\xC0\x80")}) {
    const ObjectKey k(bad);
    EXPECT_EQ(put(k, "x").error().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(read(k).error().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(head_code(k), StatusCode::kInvalidArgument);
    EXPECT_EQ(store().remove(context(), std::array{k}).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store().start_upload(context(), k, {}).error().code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(store().copy(context(), {.key = k}, key("t")).error().code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_P(ObjectStoreContract, DescribeSaysSomething) { EXPECT_FALSE(store().describe().empty()); }

}  // namespace millrace
