#include "dataset/version_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "dataset/version_log_payload.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

// A record as the log stores it, with a payload that a test may spoil.
LogRecord published_record() {
  VersionEntry entry{.ref = ref_of("a@v1"), .event = VersionEvent::kPublished, .number = 2};
  entry.facts = facts_of("a");
  entry.facts->reservation = std::string(32, 'a');
  return {.key = version_log_prefix(entry.ref) + "00000002.json",
          .kind = "published",
          .number = 2,
          .nonce = std::string(32, 'b'),
          .time = {},
          .who = writer_of("alice"),
          .payload = version_payload(entry)};
}

StatusCode payload_code(const LogRecord& record) {
  const auto entry = decode_version_entry(ref_of("a@v1"), record);
  if (entry) return StatusCode::kOk;
  EXPECT_NE(entry.error().message().find(record.key), std::string::npos);
  return entry.error().code();
}

TEST(VersionLog, PrefixesLeadBackToVersions) {
  const VersionRef ref = ref_of("a/b.c@v1");
  EXPECT_EQ(version_log_prefix(ref), ".millrace/datasets/a,b.c/versions/v1/");
  EXPECT_EQ(version_of_log_prefix(version_log_prefix(ref)), ref);
  for (const char* other :
       {".millrace/datasets/a/aliases/v1/", ".millrace/datasets/a/versions/v1/x/", "a/", "",
        ".millrace/datasets/a/versions/", ".millrace/datasets//versions/v1/",
        ".millrace/datasets/a,/versions/v1/", ".millrace/datasets/a/versions/v1"}) {
    EXPECT_FALSE(version_of_log_prefix(other)) << other;
  }
}

TEST(VersionLog, FactsRoundTripThroughEveryEvent) {
  RegistryWorld world;
  const Registry registry = world.registry();
  const VersionRef ref = ref_of("a@v1");
  const Reservation reservation = registry.reserve(world.context, ref, {.reason = "why"}).value();
  EXPECT_EQ(registry.version(world.context, ref).value().reason, "why");
  VersionFacts facts = facts_of("a");
  const VersionEntry committed = registry.commit(world.context, reservation, facts).value();
  facts.reservation = reservation.nonce;
  facts.published = committed.since;
  facts.publisher = writer_of("alice");
  EXPECT_EQ(committed.facts, facts);
  EXPECT_EQ(registry.version(world.context, ref).value().facts, facts);

  world.clock.advance(std::chrono::hours(1));
  ASSERT_TRUE(registry.remove(world.context, ref, "old"));
  const VersionEntry removed = registry.version(world.context, ref).value();
  EXPECT_EQ(removed.facts, facts);
  EXPECT_EQ(removed.reason, "old");
  EXPECT_EQ(removed.removal->removed, world.clock.wall_now());
  EXPECT_EQ(removed.removal->retention, std::chrono::days(30));
  ASSERT_TRUE(registry.restore(world.context, ref));
  EXPECT_FALSE(registry.version(world.context, ref).value().removal);
  facts.sample_count.reset();
  EXPECT_NE(registry.version(world.context, ref).value().facts, facts);
  const auto history = registry.history(world.context, ref).value();
  std::vector<std::string_view> events;
  for (const VersionEntry& entry : history)
    events.push_back(version_event_name(entry.event));
  EXPECT_EQ(events,
            (std::vector<std::string_view>{"reserved", "published", "removed", "restored"}));
}

TEST(VersionLog, EveryFieldOfThePayloadIsChecked) {
  const LogRecord good = published_record();
  ASSERT_EQ(payload_code(good), StatusCode::kOk);
  for (const auto& [name, value] : good.payload["facts"].items()) {
    SCOPED_TRACE(name);
    LogRecord record = good;
    record.payload["facts"].erase(name);
    EXPECT_EQ(payload_code(record),
              name == "sample_count" ? StatusCode::kOk : StatusCode::kCorruption);
    for (const nlohmann::json& wrong : {nlohmann::json(-1), nlohmann::json(1.5),
                                        nlohmann::json(true), nlohmann::json::array({1, 2})}) {
      record.payload["facts"][name] = wrong;
      EXPECT_EQ(payload_code(record), StatusCode::kCorruption) << wrong.dump();
    }
  }
  for (const auto& [name, value] : good.payload["facts"]["layout"].items()) {
    SCOPED_TRACE(name);
    LogRecord record = good;
    record.payload["facts"]["layout"].erase(name);
    EXPECT_EQ(payload_code(record), StatusCode::kCorruption);
  }
}

TEST(VersionLog, ValuesThatOnlyLookRightAreRefused) {
  const auto spoil = [](const char* name, const nlohmann::json& value) {
    LogRecord record = published_record();
    record.payload["facts"][name] = value;
    return payload_code(record);
  };
  EXPECT_EQ(spoil("origin", "stolen"), StatusCode::kCorruption);
  EXPECT_EQ(spoil("content_digest", "00"), StatusCode::kCorruption);
  EXPECT_EQ(spoil("content_digest", std::string(64, 'g')), StatusCode::kCorruption);
  EXPECT_EQ(spoil("created", "yesterday"), StatusCode::kCorruption);
  EXPECT_EQ(spoil("reservation", std::string(31, '0')), StatusCode::kCorruption);
  EXPECT_EQ(spoil("labels", {{"a", 1}}), StatusCode::kCorruption);
  LogRecord record = published_record();
  record.payload["facts"]["layout"]["parents"] = {"no version"};
  EXPECT_EQ(payload_code(record), StatusCode::kCorruption);
  record = published_record();
  record.kind = "invented";
  EXPECT_EQ(payload_code(record), StatusCode::kCorruption);
  record = published_record();
  record.kind = "removed";  // Lacks what a removal must say.
  EXPECT_EQ(payload_code(record), StatusCode::kCorruption);
  record.payload["removal"] = {{"removed", "2026-01-01T00:00:00Z"},
                               {"retention_seconds", UINT64_MAX}};
  EXPECT_EQ(payload_code(record), StatusCode::kCorruption);
}

TEST(VersionFacts, HaveLimits) {
  EXPECT_TRUE(check_facts(facts_of("a")).ok());
  VersionFacts facts = facts_of("a");
  facts.annotation.notes = std::string(kNotesBytesMax + 1, 'x');
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  facts.annotation.notes = "\xFF";
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  facts.annotation.labels[""] = "x";
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  facts.annotation.labels["x"] = std::string(kLabelValueBytesMax + 1, 'x');
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  for (std::size_t i = 0; i < kLabelsMax; ++i)
    facts.annotation.labels[std::to_string(i)] = "x";
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  facts.source = std::string(kSourceBytesMax + 1, 'x');
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
  facts = facts_of("a");
  facts.layout.parents.assign(kParentsMax + 1, ref_of("a@b"));
  EXPECT_EQ(check_facts(facts).code(), StatusCode::kInvalidArgument);
}

// What is allowed by each limit alone fits into a record together.
TEST(VersionFacts, TheLargestFitIntoARecord) {
  RegistryWorld world;
  VersionFacts facts = facts_of("a");
  facts.annotation.notes = std::string(kNotesBytesMax, '"');
  facts.annotation.labels.clear();
  for (std::size_t i = 0; i < kLabelsMax; ++i) {
    facts.annotation.labels[fmt::format("{:{}}", i, kLabelNameBytesMax)] =
        std::string(kLabelValueBytesMax, 'x');
  }
  facts.source = std::string(kSourceBytesMax, 'x');
  facts.layout.parents.assign(
      kParentsMax,
      ref_of(std::string(127, 'a') + "/" + std::string(127, 'b') + "@" + std::string(50, 'c')));
  const Registry registry = world.registry();
  const auto reservation = registry.reserve(world.context, ref_of("a@v1"), {}).value();
  const auto entry = registry.commit(world.context, reservation, facts);
  ASSERT_TRUE(entry.has_value()) << entry.error().to_string();
  EXPECT_EQ(registry.version(world.context, ref_of("a@v1")).value().facts->annotation,
            facts.annotation);
}

TEST(VersionLog, AFileStoreHoldsTheLongestNames) {
  const VersionRef ref =
      ref_of(std::string(127, 'a') + "/" + std::string(127, 'b') + "@" + std::string(128, 'c'));
  const std::string key = version_log_prefix(ref) + "00000001.json";
  EXPECT_LE(key.size(), kKeyBytesMax / 2);
  EXPECT_LE(ref.dataset.key_component().size(), 255U);
}

}  // namespace

}  // namespace millrace
