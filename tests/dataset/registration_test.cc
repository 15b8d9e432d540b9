#include "dataset/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dataset/version_reader.h"
#include "tests/dataset/publish_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

class RegistrationTest : public ::testing::Test {
 protected:
  void put(const std::string& key, const std::string& bytes) {
    ASSERT_TRUE(world.memory->put(world.context, ObjectKey(key), Slice::from_string(bytes), {}));
  }
  Result<PublishReport> run(const RegistrationOptions& options) {
    return register_version(world.context, world.environment("state"), {.prefix = "raw/set"},
                            ref_of("d@v1"), options);
  }

  PublishWorld world;
};

TEST_F(RegistrationTest, PinsObjectsWhereTheyAre) {
  put("raw/set/a/1.jpg", publish_bytes(1000, 1));
  put("raw/set/a/1.txt", "");
  put("raw/set/b.tar", publish_bytes(100'000, 2));
  put("raw/setting", "beside");
  for (const bool hash : {false, true}) {
    PublishWorld& w = world;
    const auto report = register_version(w.context, w.environment("state"), {.prefix = "raw/set"},
                                         ref_of(hash ? "d@hashed" : "d@plain"), {.hash = hash});
    ASSERT_TRUE(report) << report.error().to_string();
    EXPECT_EQ(report->files, 3u);
    const auto contents = w.contents(hash ? "d@hashed" : "d@plain");
    EXPECT_EQ(contents.at("a/1.jpg"), publish_bytes(1000, 1));
    EXPECT_EQ(contents.at("b.tar"), publish_bytes(100'000, 2));
    EXPECT_EQ(contents.size(), 5u);
    const auto manifest = w.manifest(hash ? "d@hashed" : "d@plain");
    const ManifestEntry file = manifest->entry(*manifest->resolve("b.tar").value()).value();
    const ManifestObject object =
        manifest->object_of(file, manifest->extents(file).value().front()).value();
    EXPECT_TRUE(object.foreign);
    EXPECT_EQ(object.key.value(), "raw/set/b.tar");
    EXPECT_EQ(object.checksums != nullptr, hash);
    EXPECT_EQ(file.hash().kind == HashKind::kSha256, hash);
  }
  EXPECT_TRUE(world.keys("d/").empty()) << "nothing was copied";
}

TEST_F(RegistrationTest, KeysThatCannotBeNamesAreListed) {
  put("raw/set/good", "1");
  put("raw/set/a//b", "2");
  put("raw/set/x", "3");
  put("raw/set/x/y", "4");
  const auto refused = run({});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("a//b"));
  EXPECT_THAT(refused.error().to_string(), HasSubstr("'x'"));
  EXPECT_EQ(world.registry.version(world.context, ref_of("d@v1")).value().state(),
            VersionState::kAborted);
  const auto report = run({.skip_problems = true});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->problems, 2u);
  EXPECT_EQ(report->files, 2u);
}

TEST_F(RegistrationTest, AnEmptyPrefixIsAMistakeThatLeavesNothingBehind) {
  for (const bool dry_run : {true, false}) {
    const auto refused = run({.dry_run = dry_run});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), StatusCode::kNotFound);
  }
  EXPECT_TRUE(world.keys("").empty()) << "not even an aborted reservation";
}

TEST_F(RegistrationTest, WhatIsOursIsRefused) {
  world.tree.write("x", "published");
  ASSERT_TRUE(world.publish("d@v0"));
  put("d/v0/0123456789abcdef0123456789abcdef/mine", "of somebody who likes hexadecimal digits");
  put("d/v0/free", "1");
  const std::string nonce =
      world.registry.version(world.context, ref_of("d@v0"))->facts->reservation;
  for (const std::string prefix : {"", "d", "d/v0"}) {
    const auto refused = register_version(world.context, world.environment("state"),
                                          {.prefix = prefix}, ref_of("e@v1"), {});
    ASSERT_FALSE(refused) << prefix;
    EXPECT_THAT(refused.error().to_string(), HasSubstr(nonce));
    EXPECT_THAT(refused.error().to_string(), HasSubstr("belongs to d@v0"));
  }
  const auto all = register_version(world.context, world.environment("state"), {}, ref_of("e@v1"),
                                    {.skip_problems = true});
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(all->files, 2u);
  EXPECT_TRUE(std::ranges::any_of(all->first_problems, [](const SourceProblem& problem) {
    return problem.reason == "belongs to the registry itself";
  }));
  for (const std::string& prefix : {std::string(".millrace"), "d/v0/" + nonce}) {
    const auto none = register_version(world.context, world.environment("state"),
                                       {.prefix = prefix}, ref_of("e@v2"), {.skip_problems = true});
    EXPECT_EQ(none.error().code(), StatusCode::kNotFound);
  }
}

TEST_F(RegistrationTest, AnObjectThatChangesWhileItIsHashedIsNoticed) {
  put("raw/set/a", publish_bytes(100'000, 1));
  world.faulty->set_plan([&](const FaultableCall& call) -> std::optional<Fault> {
    if (call.operation == StoreOperation::kGetRange && call.key == "raw/set/a") {
      put("raw/set/a", publish_bytes(100'000, 2));
    }
    return std::nullopt;
  });
  const auto refused = run({.hash = true});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().to_string(), HasSubstr("'raw/set/a'"));
}

// Objects in a store that is not the registry's.
class ForeignRegistrationTest : public RegistrationTest {
 protected:
  static constexpr const char* kUrl = "s3://far?endpoint=http://host";

  void put_far(const std::string& key, const std::string& bytes) {
    ASSERT_TRUE(far->put(world.context, ObjectKey(key), Slice::from_string(bytes), {}));
  }
  Result<PublishReport> register_far(std::string_view ref, const RegistrationOptions& options) {
    return register_version(world.context, world.environment("state"),
                            {.prefix = "raw/set", .store = far.get(), .store_url = kUrl},
                            ref_of(ref), options);
  }
  // What a reader that knows the store gets of a file.
  Result<std::string> read(std::string_view ref, std::string_view path, StoreResolver stores) {
    const std::unique_ptr<Manifest> manifest = world.manifest(ref);
    const VersionReader reader(*world.memory, *manifest, ref_of(ref),
                               {.stores = std::move(stores)});
    VersionWindow window(reader);
    const ManifestEntry entry = manifest->entry(*manifest->resolve(path).value()).value();
    std::string bytes(entry.size(), '\0');
    MR_ASSIGN_OR_RETURN(
        const std::size_t size,
        window.read_at(world.context, entry, 0, std::as_writable_bytes(std::span(bytes))));
    EXPECT_EQ(size, bytes.size());
    return bytes;
  }
  StoreResolver knowing() {
    return [this](const std::string& url) -> Result<std::shared_ptr<ObjectStore>> {
      EXPECT_EQ(url, kUrl);
      return far;
    };
  }

  const std::shared_ptr<MemoryObjectStore> far = std::make_shared<MemoryObjectStore>();
};

TEST_F(ForeignRegistrationTest, IsReadWhereItIs) {
  put_far("raw/set/a", publish_bytes(100'000, 1));
  put("raw/set/a", "the same key in the store of the registry");
  for (const bool hash : {false, true}) {
    const std::string ref = hash ? "d@hashed" : "d@plain";
    const auto report = register_far(ref, {.hash = hash});
    ASSERT_TRUE(report) << report.error().to_string();
    EXPECT_EQ(read(ref, "a", knowing()).value(), publish_bytes(100'000, 1));
    EXPECT_EQ(world.manifest(ref)->prefix_store(), kUrl);
  }
  // Whoever takes content over keeps its store.
  world.tree.write("a", publish_bytes(100'000, 1));
  const auto published = world.publish("d@later");
  ASSERT_TRUE(published) << published.error().to_string();
  EXPECT_EQ(published->reused_files, 1u);
  EXPECT_EQ(read("d@later", "a", knowing()).value(), publish_bytes(100'000, 1));
}

TEST_F(ForeignRegistrationTest, WhatCannotBeReadIsNamedInFull) {
  put_far("raw/set/a", "content");
  ASSERT_TRUE(register_far("d@v1", {}));
  for (const StatusCode code : {StatusCode::kPermissionDenied, StatusCode::kNotFound}) {
    const auto closed = read("d@v1", "a", [&](const std::string&) {
      return Result<std::shared_ptr<ObjectStore>>(failure(code, "closed to you"));
    });
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code(),
              code == StatusCode::kNotFound ? StatusCode::kUnavailable : code);
    for (const char* const part : {"d@v1", "raw/set/a", kUrl, "closed to you"})
      EXPECT_THAT(closed.error().to_string(), HasSubstr(part));
  }
  EXPECT_EQ(read("d@v1", "a", refuse_other_stores).error().code(), StatusCode::kUnsupported);
  put_far("raw/set/a", "changed");
  const auto changed = read("d@v1", "a", knowing());
  ASSERT_FALSE(changed);
  EXPECT_EQ(changed.error().code(), StatusCode::kPreconditionFailed);
  for (const std::string& part : {std::string("d@v1"), std::string("raw/set/a"), far->describe()})
    EXPECT_THAT(changed.error().to_string(), HasSubstr(part));
}

}  // namespace
}  // namespace millrace
