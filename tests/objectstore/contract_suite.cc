#include "tests/objectstore/contract_suite.h"

#include <chrono>

#include "base/clock.h"
#include "base/random.h"

namespace millrace {

// A program that links the suite without a store to run it on (the torture tests) is no mistake.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ObjectStoreContract);

void ObjectStoreContract::SetUp() {
  store_ = GetParam().make_store();
  ASSERT_NE(store_, nullptr) << GetParam().name << " could not be made";
  prefix_ = "ct-" + system_random().token().substr(0, 12) + "/";
}

void ObjectStoreContract::TearDown() {
  if (store_ == nullptr) return;
  ListRequest request;
  request.prefix = prefix_;
  while (true) {
    auto page = store_->list(context(), request);
    ASSERT_TRUE(page) << page.error().to_string();
    std::vector<ObjectKey> keys;
    for (const ObjectInfo& object : page->objects)
      keys.push_back(object.key);
    const Status removed = keys.empty() ? Status() : store_->remove(context(), keys);
    ASSERT_TRUE(removed.ok()) << removed.to_string();
    if (page->continuation.empty()) return;
    request.continuation = page->continuation;
  }
}

RequestContext ObjectStoreContract::context() const {
  return {system_clock().now() + std::chrono::minutes(1), "contract"};
}

Result<ObjectInfo> ObjectStoreContract::put(const ObjectKey& key, std::string_view text,
                                            PutOptions options) {
  return store().put(context(), key, Slice::copy_of(text), options);
}

ObjectInfo ObjectStoreContract::must_put(const ObjectKey& key, std::string_view text,
                                         PutOptions options) {
  auto info = put(key, text, std::move(options));
  EXPECT_TRUE(info) << info.error().to_string();
  if (!info) return {};
  EXPECT_EQ(info->key, key);
  EXPECT_EQ(info->size, text.size());
  EXPECT_FALSE(info->identity.value().empty());
  return *info;
}

Result<std::string> ObjectStoreContract::read(const ObjectKey& key,
                                              std::optional<ByteRange> range) {
  MR_ASSIGN_OR_RETURN(const GetResult got, store().get(context(), {.key = key, .range = range}));
  return std::string(got.data.text());
}

std::string ObjectStoreContract::must_read(const ObjectKey& key, std::optional<ByteRange> range) {
  auto text = read(key, range);
  EXPECT_TRUE(text) << text.error().to_string();
  return text.value_or("");
}

StatusCode ObjectStoreContract::head_code(const ObjectKey& key) {
  auto info = store().head(context(), key);
  return info ? StatusCode::kOk : info.error().code();
}

ListPage ObjectStoreContract::list_all(ListRequest request) {
  ListPage all;
  for (int pages = 0; pages < 10'000; ++pages) {
    auto page = store().list(context(), request);
    EXPECT_TRUE(page) << page.error().to_string();
    if (!page) return all;
    EXPECT_LE(page->objects.size() + page->prefixes.size(), request.entries_max);
    for (ObjectInfo& object : page->objects) {
      if (!all.objects.empty()) {
        EXPECT_LT(all.objects.back().key.value(), object.key.value());
      }
      all.objects.push_back(std::move(object));
    }
    for (std::string& prefix : page->prefixes) {
      EXPECT_TRUE(prefix.ends_with('/')) << prefix;
      if (!all.prefixes.empty()) {
        EXPECT_LT(all.prefixes.back(), prefix);
      }
      all.prefixes.push_back(std::move(prefix));
    }
    if (page->continuation.empty()) return all;
    request.continuation = page->continuation;
  }
  ADD_FAILURE() << "the list never ends";
  return all;
}

std::string ObjectStoreContract::pattern(std::size_t size, std::uint64_t seed) {
  std::string bytes(size, '\0');
  std::uint64_t x = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::size_t i = 0; i < size; ++i) {
    if (i % 8 == 0) x = x * 6364136223846793005U + 1442695040888963407U;
    bytes[i] = static_cast<char>(x >> (8 * (i % 8)));
  }
  return bytes;
}

Result<ObjectInfo> ObjectStoreContract::upload(const ObjectKey& key, std::string_view bytes,
                                               std::size_t piece_bytes, PutOptions options) {
  MR_ASSIGN_OR_RETURN(const auto upload, store().start_upload(context(), key, options));
  for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
    MR_RETURN_IF_ERROR(upload->write(context(), Slice::copy_of(bytes.substr(at, piece_bytes))));
  }
  return upload->finish(context());
}

}  // namespace millrace
