#include "dataset/run_log.h"

#include <gtest/gtest.h>

#include "objectstore/faulty_object_store.h"
#include "tests/dataset/registry_world.h"

namespace millrace {

namespace {

using std::chrono::seconds;

RunDescription description_of(const std::string& name, const std::string& version) {
  return {.name = name,
          .uses = {{.ref = ref_of(version), .content_digest = digest_of(version)}},
          .git_commit = "0123abc",
          .command_line = {"python", "train.py", "--lr=1 e-3"}};
}

class RunLogTest : public ::testing::Test {
 protected:
  std::vector<LiveRun> live(const std::string& version) {
    return runs_.live_users(world_.context, digest_of(version)).value();
  }

  RegistryWorld world_;
  const RunLog runs_{world_.access()};
};

TEST_F(RunLogTest, TellsWhatItWasTold) {
  const RunDescription description = description_of("exp42", "a@v1");
  RunRecording recording = runs_.start(world_.context, description).value();
  EXPECT_TRUE(recording.recorded);
  EXPECT_TRUE(recording.warning.ok());
  world_.clock.advance(seconds(50));
  ASSERT_TRUE(runs_.heartbeat(world_.context, recording).ok());
  RunEntry entry = runs_.run(world_.context, recording.id).value();
  EXPECT_EQ(entry.description, description);
  EXPECT_EQ(entry.who, writer_of("alice"));
  EXPECT_EQ(entry.heartbeat - entry.started, seconds(50));
  EXPECT_TRUE(entry.live(world_.clock.wall_now()));
  EXPECT_FALSE(entry.ended);
  recording.observed = {.reads = {{.version = "a@v1",
                                   .read_bytes = 10,
                                   .reads = 2,
                                   .fetched_bytes = 4,
                                   .handed_out_files = 1}},
                        .failures = {{.dataset = "a@v1",
                                      .sample = 7,
                                      .key = "cat/7",
                                      .action = "skip",
                                      .error = "corruption: it is damaged",
                                      .times = 2}}};
  ASSERT_TRUE(runs_.finish(world_.context, recording, 137).ok());
  entry = runs_.run(world_.context, recording.id).value();
  EXPECT_FALSE(entry.live(world_.clock.wall_now()));
  EXPECT_EQ(entry.exit_code, 137U);
  EXPECT_EQ(entry.observed, recording.observed);
  EXPECT_EQ(entry.ended, world_.clock.wall_now());
}

TEST_F(RunLogTest, LivesForThreePeriodsAfterAHeartbeat) {
  RunRecording recording = runs_.start(world_.context, description_of("exp42", "a@v1")).value();
  world_.clock.advance(seconds(179));
  EXPECT_EQ(live("a@v1").size(), 1U);
  world_.clock.advance(seconds(1));
  EXPECT_TRUE(live("a@v1").empty());
  ASSERT_TRUE(runs_.heartbeat(world_.context, recording).ok());
  ASSERT_EQ(live("a@v1").size(), 1U);
  EXPECT_EQ(live("a@v1")[0].name, "exp42");
  EXPECT_TRUE(live("a@v1")[0].uses(ref_of("a@v1")));
  EXPECT_FALSE(live("a@v1")[0].uses(ref_of("a@v2")));
  EXPECT_TRUE(live("a@v2").empty());
}

// The clock of the node that runs may be wrong; that of the store then counts.
TEST_F(RunLogTest, ANodeWithASlowClockIsAlive) {
  ManualClock slow;
  slow.set_wall_offset(-std::chrono::hours(5));
  RegistryAccess access{*world_.recording, slow, world_.random, writer_of("slow")};
  ASSERT_TRUE(RunLog(access).start(world_.context, description_of("exp42", "a@v1")));
  EXPECT_EQ(live("a@v1").size(), 1U);
}

TEST_F(RunLogTest, WhatEndedIsNotReadToFindTheLiving) {
  for (int i = 0; i < 200; ++i) {
    RunRecording recording = runs_.start(world_.context, description_of("old", "a@v1")).value();
    ASSERT_TRUE(runs_.finish(world_.context, recording, 0).ok());
    world_.clock.advance(seconds(1));
  }
  ASSERT_TRUE(runs_.start(world_.context, description_of("new", "a@v1")));
  world_.recording->clear();
  EXPECT_EQ(live("a@v1").size(), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kList), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kGetRange), 1U);
  EXPECT_EQ(world_.recording->count(StoreOperation::kHead), 1U);
  world_.recording->clear();
  EXPECT_EQ(runs_.users(world_.context, digest_of("a@v1")).value().size(), 201U);
  EXPECT_EQ(runs_.ids(world_.context).value().size(), 201U);
  EXPECT_EQ(world_.recording->count(), 2U);
}

TEST_F(RunLogTest, ListsTheNewestFirst) {
  std::vector<RunId> ids;
  for (int i = 0; i < 3; ++i) {
    ids.insert(ids.begin(), runs_.start(world_.context, description_of("x", "a@v1")).value().id);
    world_.clock.advance(seconds(1));
  }
  EXPECT_EQ(runs_.ids(world_.context).value(), ids);
  EXPECT_EQ(runs_.users(world_.context, digest_of("a@v1")).value(), ids);
}

TEST_F(RunLogTest, AKillBetweenTheEndAndItsMarksIsAnEnd) {
  RunRecording recording = runs_.start(world_.context, description_of("x", "a@v1")).value();
  FaultyObjectStore faulty(world_.memory, fault_nth_call(2, {}), world_.clock, inline_executor());
  RegistryAccess access{faulty, world_.clock, world_.random, writer_of("alice")};
  EXPECT_EQ(RunLog(access).finish(world_.context, recording, 0).code(), StatusCode::kUnavailable);
  EXPECT_TRUE(live("a@v1").empty());
  EXPECT_TRUE(RunLog(access).finish(world_.context, recording, 0).ok());
}

TEST_F(RunLogTest, ReadOnlyCredentialsAreAWarning) {
  FaultyObjectStore faulty(
      world_.memory,
      [](const FaultableCall& call) {
        return call.operation == StoreOperation::kPut
                   ? std::optional<Fault>({.code = StatusCode::kPermissionDenied})
                   : std::nullopt;
      },
      world_.clock, inline_executor());
  RegistryAccess access{faulty, world_.clock, world_.random, writer_of("alice")};
  const RunLog runs(access);
  RunRecording recording = runs.start(world_.context, description_of("exp42", "a@v1")).value();
  EXPECT_FALSE(recording.recorded);
  EXPECT_EQ(recording.warning.code(), StatusCode::kPermissionDenied);
  EXPECT_NE(recording.warning.message().find("the run 'exp42' is not fully recorded"),
            std::string::npos);
  EXPECT_EQ(faulty.calls(), 1U);
  EXPECT_TRUE(runs.heartbeat(world_.context, recording).ok());
  EXPECT_TRUE(runs.finish(world_.context, recording, 0).ok());
  EXPECT_EQ(faulty.calls(), 1U);
  EXPECT_EQ(world_.memory->object_count(), 0U);
}

TEST_F(RunLogTest, OtherFailuresAreFailures) {
  for (std::uint64_t call = 1; call <= 3; ++call) {
    FaultyObjectStore faulty(world_.memory, fault_nth_call(call, {}), world_.clock,
                             inline_executor());
    RegistryAccess access{faulty, world_.clock, world_.random, writer_of("alice")};
    EXPECT_EQ(RunLog(access).start(world_.context, description_of("x", "a@v1")).error().code(),
              StatusCode::kUnavailable);
  }
}

TEST_F(RunLogTest, RefusesWhatItCannotRecord) {
  EXPECT_EQ(runs_.start(world_.context, description_of("a b", "a@v1")).error().code(),
            StatusCode::kInvalidArgument);
  RunDescription many = description_of("x", "a@v1");
  many.uses.resize(kRunUsesMax + 1, many.uses[0]);
  EXPECT_EQ(runs_.start(world_.context, many).error().code(), StatusCode::kInvalidArgument);
  RunDescription fast = description_of("x", "a@v1");
  fast.heartbeat_period = std::chrono::milliseconds(10);
  EXPECT_EQ(runs_.start(world_.context, fast).error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(runs_.run(world_.context, RunId("20260101T000000Z-0123456789abcdef")).error().code(),
            StatusCode::kNotFound);
}

TEST_F(RunLogTest, ALongCommandLineIsCut) {
  RunDescription description = description_of("x", "a@v1");
  description.command_line.assign(100'000, "file\xFF");
  const RunId id = runs_.start(world_.context, description).value().id;
  const RunEntry entry = runs_.run(world_.context, id).value();
  EXPECT_EQ(entry.description.command_line.back(), "...");
  EXPECT_EQ(entry.description.command_line.front(), "file\xEF\xBF\xBD");
}

TEST_F(RunLogTest, DamageIsNoticed) {
  const RunId id = runs_.start(world_.context, description_of("x", "a@v1")).value().id;
  world_.write(".millrace/runs/" + id.value() + "/heartbeat.json", "rubbish");
  EXPECT_EQ(runs_.run(world_.context, id).error().code(), StatusCode::kCorruption);
  const auto live = runs_.live_users(world_.context, digest_of("a@v1"));
  ASSERT_FALSE(live) << "a run that cannot be judged must not be taken for dead";
  EXPECT_EQ(live.error().code(), StatusCode::kCorruption);
}

TEST(RunId, HasOneForm) {
  EXPECT_TRUE(parse_run_id("20260101T000000Z-0123456789abcdef"));
  for (const char* text :
       {"", "x", "20260101T000000Z-0123456789abcdeg", "20261301T000000Z-0123456789abcdef",
        "20260101T000000Z-0123456789abcdef.end"}) {
    EXPECT_FALSE(parse_run_id(text)) << text;
  }
}

}  // namespace

}  // namespace millrace
