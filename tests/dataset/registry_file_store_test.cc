// The registry on a directory: keys become paths there, and a component has 255 bytes.

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "objectstore/file_object_store.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

class RegistryFileStoreTest : public ::testing::Test {
 protected:
  RegistryFileStoreTest() {
    std::string pattern = ::testing::TempDir() + "millrace-registry-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    store_ = FileObjectStore::open(root_, inline_executor(), {}).value();
  }
  ~RegistryFileStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(root_);
  }

  std::string root_;
  std::unique_ptr<FileObjectStore> store_;
  const RequestContext context_ = RequestContext::background();
};

TEST_F(RegistryFileStoreTest, PublishesAliasesAndRuns) {
  const Registry registry({*store_, system_clock(), system_random(), this_process_writer()});
  const VersionRef longest =
      ref_of(std::string(127, 'a') + "/" + std::string(127, 'b') + "@" + std::string(128, 'c'));
  for (const VersionRef& ref : {ref_of("a/b@v1"), ref_of("a/b@v2"), ref_of("a/b-c@v1"), longest}) {
    const auto reservation = registry.reserve(context_, ref, {});
    ASSERT_TRUE(reservation.has_value()) << reservation.error().to_string();
    const auto entry = registry.commit(context_, *reservation, facts_of("x"));
    ASSERT_TRUE(entry.has_value()) << entry.error().to_string();
  }
  for (const char* refused : {"a@v1", "a/b/c@v1", "a/b@v1"}) {
    const auto reservation = registry.reserve(context_, ref_of(refused), {});
    ASSERT_FALSE(reservation) << refused;
    EXPECT_EQ(reservation.error().code(), StatusCode::kConflict);
  }
  EXPECT_EQ(registry.datasets(context_).value().size(), 3U);
  EXPECT_EQ(registry.every_version(context_).value().size(), 4U);
  EXPECT_TRUE(registry.open_reservations(context_).value().empty());

  const DatasetName dataset = dataset_of("a/b");
  for (const char* version : {"v1", "v2"})
    ASSERT_TRUE(registry.aliases().set(context_, dataset, alias_of("x"), version_of(version)));
  ASSERT_TRUE(registry.aliases().rollback(context_, dataset, alias_of("x")));
  EXPECT_EQ(registry.resolve(context_, ref_of("a/b@x")).value().ref, ref_of("a/b@v1"));

  const Sha256Digest content = facts_of("x").content_digest;
  RunRecording run =
      registry.runs().start(context_, {.name = "r", .uses = {{ref_of("a/b@v1"), content}}}).value();
  ASSERT_EQ(registry.runs().live_users(context_, content).value().size(), 1U);
  ASSERT_TRUE(registry.runs().finish(context_, run, 0).ok());
  EXPECT_TRUE(registry.runs().live_users(context_, content).value().empty());
  EXPECT_EQ(registry.runs().ids(context_).value().size(), 1U);
}

}  // namespace

}  // namespace millrace
