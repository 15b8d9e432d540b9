#include "dataset/registration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
    return register_version(world.context, world.environment("state"), "raw/set", ref_of("d@v1"),
                            options);
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
    const auto report = register_version(w.context, w.environment("state"), "raw/set",
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

TEST_F(RegistrationTest, AnEmptyPrefixIsAMistake) {
  const auto refused = run({});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), StatusCode::kNotFound);
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

}  // namespace
}  // namespace millrace
