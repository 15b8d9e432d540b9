#include "dataset/alias_log.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

class AliasTest : public ::testing::Test {
 protected:
  AliasTest() {
    for (const char* version : {"v1", "v2", "v3", "v4"})
      world_.publish(std::string("a@") + version);
    world_.recording->clear();
  }

  Result<AliasEntry> set(std::string_view version,
                         const AliasCondition& condition = AliasCondition::any()) {
    return aliases().set(world_.context, dataset_, alias_, version_of(version), condition);
  }
  // The target after a rollback, or the code of its failure.
  std::string rollback() {
    const auto entry = aliases().rollback(world_.context, dataset_, alias_);
    return entry ? entry->target->text() : std::string(status_code_name(entry.error().code()));
  }
  std::string target() {
    const auto entry = aliases().get(world_.context, dataset_, alias_);
    return entry ? entry->target->text() : std::string(status_code_name(entry.error().code()));
  }
  const RegistryAliases& aliases() { return registry_.aliases(); }

  RegistryWorld world_;
  const Registry registry_ = world_.registry();
  const DatasetName dataset_ = dataset_of("a");
  const AliasName alias_ = alias_of("current");
};

TEST_F(AliasTest, PointsWhereItWasSet) {
  EXPECT_EQ(target(), "not_found");
  ASSERT_TRUE(set("v1"));
  EXPECT_EQ(target(), "v1");
  const AliasEntry entry = set("v2").value();
  EXPECT_EQ(entry.previous->text(), "v1");
  EXPECT_EQ(entry.who, writer_of("alice"));
  EXPECT_EQ(target(), "v2");
  EXPECT_EQ(registry_.resolve(world_.context, ref_of("a@current")).value().ref, ref_of("a@v2"));
}

TEST_F(AliasTest, RollbackGoesFurtherBackEachTime) {
  for (const char* version : {"v1", "v2", "v3"})
    ASSERT_TRUE(set(version));
  EXPECT_EQ(rollback(), "v2");
  EXPECT_EQ(rollback(), "v1");
  EXPECT_EQ(rollback(), "conflict");
  EXPECT_EQ(target(), "v1");
  ASSERT_TRUE(set("v4"));
  EXPECT_EQ(rollback(), "v1");
  const auto history = aliases().history(world_.context, dataset_, alias_).value();
  std::vector<std::string> moves;
  for (const AliasEntry& entry : history)
    moves.push_back(std::string(alias_event_name(entry.event)) + " " +
                    (entry.target ? entry.target->text() : "-"));
  EXPECT_EQ(moves,
            (std::vector<std::string>{"claimed -", "set v1", "set v2", "set v3", "rolled_back v2",
                                      "rolled_back v1", "set v4", "rolled_back v1"}));
}

TEST_F(AliasTest, SettingWhatIsSetChangesNothing) {
  const std::uint64_t number = set("v1").value().number;
  EXPECT_EQ(set("v1").value().number, number);
}

TEST_F(AliasTest, AConditionMustHold) {
  EXPECT_EQ(set("v1", AliasCondition::points_to(version_of("v2"))).error().code(),
            StatusCode::kConflict);
  EXPECT_EQ(target(), "not_found");
  ASSERT_TRUE(set("v1", AliasCondition::absent()));
  const auto refused = set("v2", AliasCondition::absent());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("points to 'v1'"), std::string::npos);
  EXPECT_EQ(set("v3", AliasCondition::points_to(version_of("v2"))).error().code(),
            StatusCode::kConflict);
  ASSERT_TRUE(set("v3", AliasCondition::points_to(version_of("v1"))));
  EXPECT_EQ(target(), "v3");
}

TEST_F(AliasTest, PointsToPublishedVersionsOnly) {
  EXPECT_EQ(set("v9").error().code(), StatusCode::kNotFound);
  ASSERT_TRUE(registry_.reserve(world_.context, ref_of("a@v8"), {}));
  EXPECT_EQ(set("v8").error().code(), StatusCode::kNotFound);
  ASSERT_TRUE(set("v1"));
  ASSERT_TRUE(set("v2"));
  ASSERT_TRUE(registry_.remove(world_.context, ref_of("a@v1"), "old"));
  EXPECT_EQ(set("v1").error().code(), StatusCode::kNotFound);
  EXPECT_EQ(rollback(), "conflict");
  EXPECT_EQ(target(), "v2");
}

TEST_F(AliasTest, AnAliasOfARemovedVersionSaysSo) {
  ASSERT_TRUE(set("v1"));
  ASSERT_TRUE(registry_.remove(world_.context, ref_of("a@v1"), "old"));
  const auto entry = registry_.resolve(world_.context, ref_of("a@current"));
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code(), StatusCode::kNotFound);
  EXPECT_NE(entry.error().message().find("the alias a@current: a@v1 was removed"),
            std::string::npos);
}

TEST_F(AliasTest, AliasesAndVersionsShareOneSpaceOfNames) {
  EXPECT_EQ(
      aliases().set(world_.context, dataset_, alias_of("v2"), version_of("v1")).error().code(),
      StatusCode::kConflict);
  ASSERT_TRUE(set("v1"));
  const auto reserved = registry_.reserve(world_.context, ref_of("a@current"), {});
  ASSERT_FALSE(reserved);
  EXPECT_EQ(reserved.error().code(), StatusCode::kConflict);
  EXPECT_NE(reserved.error().message().find("is an alias of a"), std::string::npos);
}

TEST_F(AliasTest, AWithdrawnAliasFreesItsName) {
  ASSERT_TRUE(set("v1"));
  ASSERT_TRUE(set("v2"));
  ASSERT_TRUE(aliases().withdraw(world_.context, dataset_, alias_));
  EXPECT_EQ(target(), "not_found");
  EXPECT_EQ(rollback(), "not_found");
  EXPECT_EQ(aliases().withdraw(world_.context, dataset_, alias_).error().code(),
            StatusCode::kNotFound);
  const auto reservation = registry_.reserve(world_.context, ref_of("a@current"), {}).value();
  EXPECT_EQ(set("v3").error().code(), StatusCode::kConflict);
  ASSERT_TRUE(registry_.abort(world_.context, reservation, "test").ok());
  ASSERT_TRUE(set("v3"));
  EXPECT_EQ(rollback(), "v2");
}

// The writer of a claim died before it looked whether a version has the name.
TEST_F(AliasTest, AClaimIsTakenUpOrGivenUp) {
  const RegistryAccess bob = world_.access("bob");
  const AliasLog log(bob, dataset_, alias_);
  AliasEntry claim{.dataset = dataset_, .alias = alias_};
  claim.number = 1;
  ASSERT_TRUE(log.append(world_.context, claim).value().ours);
  EXPECT_EQ(target(), "not_found");
  EXPECT_EQ(registry_.reserve(world_.context, ref_of("a@current"), {}).error().code(),
            StatusCode::kConflict);
  ASSERT_TRUE(set("v1"));
  EXPECT_EQ(target(), "v1");

  const AliasName taken = alias_of("v2");
  claim.alias = taken;
  const AliasLog other(bob, dataset_, taken);
  ASSERT_TRUE(other.append(world_.context, claim).value().ours);
  EXPECT_EQ(aliases().set(world_.context, dataset_, taken, version_of("v1")).error().code(),
            StatusCode::kConflict);
  EXPECT_FALSE(other.last(world_.context).value()->holds_name());
}

TEST_F(AliasTest, ListsWithOneGetForEachAlias) {
  for (int i = 0; i < 60; ++i)
    ASSERT_TRUE(set(i % 2 == 0 ? "v1" : "v2"));
  ASSERT_TRUE(aliases().set(world_.context, dataset_, alias_of("best"), version_of("v3")));
  ASSERT_TRUE(aliases().set(world_.context, dataset_, alias_of("gone"), version_of("v3")));
  ASSERT_TRUE(aliases().withdraw(world_.context, dataset_, alias_of("gone")));
  world_.recording->clear();
  const auto entries = aliases().list(world_.context, dataset_).value();
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), 3U);
  EXPECT_EQ(world_.recording->count(), 4U);
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].alias.text(), "best");
  EXPECT_EQ(entries[1].target->text(), "v2");
}

TEST_F(AliasTest, DamagedRecordsAreNoticed) {
  const LogRecord good{.key = "k",
                       .kind = "set",
                       .number = 3,
                       .payload = {{"target", "v1"}, {"position", 3U}, {"below", 2U}}};
  const auto code = [&](const LogRecord& record) {
    const auto entry = decode_alias_entry(dataset_, alias_, record);
    return entry ? StatusCode::kOk : entry.error().code();
  };
  EXPECT_EQ(code(good), StatusCode::kOk);
  const auto spoil = [&](const char* name, const nlohmann::json& value) {
    LogRecord record = good;
    record.payload[name] = value;
    return code(record);
  };
  EXPECT_EQ(spoil("target", "a/b"), StatusCode::kCorruption);
  EXPECT_EQ(spoil("target", nullptr), StatusCode::kCorruption);
  EXPECT_EQ(spoil("previous", 7), StatusCode::kCorruption);
  EXPECT_EQ(spoil("position", 4U), StatusCode::kCorruption);
  EXPECT_EQ(spoil("position", 0U), StatusCode::kCorruption);
  EXPECT_EQ(spoil("below", 3U), StatusCode::kCorruption);
  LogRecord record = good;
  record.kind = "withdrawn";
  EXPECT_EQ(code(record), StatusCode::kCorruption);
  record.kind = "invented";
  EXPECT_EQ(code(record), StatusCode::kCorruption);
}

// Sets, rollbacks and withdrawals against a stack.
TEST_F(AliasTest, BehavesLikeAStack) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const AliasName name = alias_of("alias" + std::to_string(seed));
    std::vector<std::string> stack;
    bool there = false;
    for (int step = 0; step < 60; ++step) {
      const std::uint64_t drawn = random() % 10;
      if (drawn < 5) {
        const std::string version = "v" + std::to_string(1 + random() % 4);
        ASSERT_TRUE(aliases().set(world_.context, dataset_, name, version_of(version)));
        if (!there || stack.back() != version) stack.push_back(version);
        there = true;
      } else if (drawn < 9) {
        const auto entry = aliases().rollback(world_.context, dataset_, name);
        ASSERT_EQ(entry.has_value(), there && stack.size() > 1);
        if (entry) stack.pop_back();
      } else {
        const auto entry = aliases().withdraw(world_.context, dataset_, name);
        ASSERT_EQ(entry.has_value(), there);
        there = false;
      }
      const auto now = aliases().get(world_.context, dataset_, name);
      ASSERT_EQ(now.has_value(), there);
      if (there) {
        ASSERT_EQ(now->target->text(), stack.back());
      }
    }
  }
}

}  // namespace

}  // namespace millrace
