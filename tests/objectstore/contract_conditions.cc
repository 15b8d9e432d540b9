// Conditional writes and their races, deadlines, cancellation, and how get_range answers.

#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include "base/thread_pool.h"
#include "tests/objectstore/contract_suite.h"

namespace millrace {

TEST_P(ObjectStoreContract, CreateIfAbsent) {
  if (!traits().create_if_absent) GTEST_SKIP();
  must_put(key("c"), "first", {.condition = WriteCondition::if_absent()});
  auto second = put(key("c"), "second", {.condition = WriteCondition::if_absent()});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), StatusCode::kPreconditionFailed) << second.error().to_string();
  EXPECT_EQ(must_read(key("c")), "first");
  ASSERT_TRUE(store().remove(context(), std::vector{key("c")}).ok());
  must_put(key("c"), "third", {.condition = WriteCondition::if_absent()});
  EXPECT_EQ(must_read(key("c")), "third");
}

TEST_P(ObjectStoreContract, ReplaceIfIdentity) {
  if (!traits().replace_if_identity) GTEST_SKIP();
  const ObjectInfo one = must_put(key("c"), "one");
  const ObjectInfo two =
      must_put(key("c"), "two", {.condition = WriteCondition::if_identity(one.identity)});
  auto stale = put(key("c"), "three", {.condition = WriteCondition::if_identity(one.identity)});
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().code(), StatusCode::kPreconditionFailed) << stale.error().to_string();
  EXPECT_EQ(must_read(key("c")), "two");

  auto missing = put(key("gone"), "x", {.condition = WriteCondition::if_identity(two.identity)});
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), StatusCode::kPreconditionFailed) << missing.error().to_string();
  EXPECT_EQ(head_code(key("gone")), StatusCode::kNotFound);
}

TEST_P(ObjectStoreContract, ConditionalPutKeepsTheUsersMetadataAndNothingElse) {
  if (!traits().create_if_absent || !traits().metadata) GTEST_SKIP();
  const ObjectMetadata metadata = {{"mine", "1"}};
  must_put(key("c"), "x", {.condition = WriteCondition::if_absent(), .metadata = metadata});
  auto info = store().head(context(), key("c"));
  ASSERT_TRUE(info) << info.error().to_string();
  EXPECT_EQ(info->metadata, metadata);
}

TEST_P(ObjectStoreContract, ARaceToCreateHasOneWinner) {
  if (!traits().create_if_absent) GTEST_SKIP();
  constexpr int kRacers = 16;
  for (int round = 0; round < 3; ++round) {
    const ObjectKey k = key("race-" + std::to_string(round));
    std::latch start(kRacers);
    std::atomic<int> winners = 0;
    std::atomic<int> winner = -1;
    std::vector<std::jthread> racers;
    for (int i = 0; i < kRacers; ++i) {
      racers.emplace_back([&, i] {
        start.arrive_and_wait();
        auto info =
            put(k, "racer " + std::to_string(i), {.condition = WriteCondition::if_absent()});
        if (info) {
          ++winners;
          winner = i;
        } else {
          // A store may be unable to say who won while the race is on.
          EXPECT_TRUE(info.error() == StatusCode::kPreconditionFailed ||
                      info.error() == StatusCode::kConflict)
              << info.error().to_string();
        }
      });
    }
    racers.clear();
    EXPECT_EQ(winners, 1);
    EXPECT_EQ(must_read(k), "racer " + std::to_string(winner));
  }
}

// Eight writers add one to a number, each by compare and swap: no increment is lost. A writer that
// is told kConflict or kUnavailable may have been heard all the same, and counts again.
TEST_P(ObjectStoreContract, ARaceToReplaceLosesNoUpdate) {
  if (!traits().replace_if_identity) GTEST_SKIP();
  constexpr int kWriters = 8;
  constexpr int kIncrements = 5;
  std::atomic<int> unclear = 0;
  must_put(key("n"), "0");
  std::vector<std::jthread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&] {
      for (int done = 0; done < kIncrements;) {
        auto got = store().get(context(), {.key = key("n")});
        ASSERT_TRUE(got) << got.error().to_string();
        const int value = std::stoi(std::string(got->data.text()));
        auto info = put(key("n"), std::to_string(value + 1),
                        {.condition = WriteCondition::if_identity(got->info.identity)});
        if (info) {
          ++done;
        } else if (info.error() == StatusCode::kConflict ||
                   info.error() == StatusCode::kUnavailable) {
          ++unclear;
        } else {
          ASSERT_EQ(info.error().code(), StatusCode::kPreconditionFailed)
              << info.error().to_string();
        }
      }
    });
  }
  writers.clear();
  const int counted = std::stoi(must_read(key("n")));
  EXPECT_GE(counted, kWriters * kIncrements);
  EXPECT_LE(counted, kWriters * kIncrements + unclear);
}

TEST_P(ObjectStoreContract, ReadersDuringReplacementSeeOneVersionWhole) {
  const std::string a(100'000, 'a');
  const std::string b(70'000, 'b');
  must_put(key("v"), a);
  std::atomic<bool> stop = false;
  std::jthread writer([&] {
    for (int i = 0; !stop && i < 500; ++i)
      must_put(key("v"), i % 2 == 0 ? b : a);
  });
  for (int i = 0; i < 50; ++i) {
    const std::string got = must_read(key("v"));
    EXPECT_TRUE(got == a || got == b) << "a mix of two versions, " << got.size() << " bytes";
  }
  stop = true;
}

TEST_P(ObjectStoreContract, ADeadlineThatHasPassedEndsEveryCallAtOnce) {
  must_put(key("a"), "x");
  const RequestContext late(system_clock().now() - std::chrono::seconds(1), "contract");
  const auto begin = system_clock().now();
  EXPECT_EQ(store().get(late, {.key = key("a")}).error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().head(late, key("a")).error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().list(late, {.prefix = prefix()}).error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().put(late, key("b"), Slice::copy_of("x"), {}).error().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().start_upload(late, key("b"), {}).error().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().copy(late, {.key = key("a")}, key("b")).error().code(),
            StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store().remove(late, std::vector{key("a")}).code(), StatusCode::kDeadlineExceeded);
  // Generous: it tells "at once" from "after a connection time-out", not fast from slow.
  EXPECT_LT(system_clock().now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(head_code(key("b")), StatusCode::kNotFound);
  EXPECT_EQ(head_code(key("a")), StatusCode::kOk);
}

TEST_P(ObjectStoreContract, ACancelledContextEndsEveryCall) {
  must_put(key("a"), "x");
  const RequestContext cancelled = context();
  cancelled.cancellation().request();
  EXPECT_EQ(store().get(cancelled, {.key = key("a")}).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store().head(cancelled, key("a")).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store().list(cancelled, {.prefix = prefix()}).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store().put(cancelled, key("b"), Slice::copy_of("x"), {}).error().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(store().start_upload(cancelled, key("b"), {}).error().code(), StatusCode::kCancelled);
  EXPECT_EQ(store().copy(cancelled, {.key = key("a")}, key("b")).error().code(),
            StatusCode::kCancelled);
  EXPECT_EQ(store().remove(cancelled, std::vector{key("a")}).code(), StatusCode::kCancelled);
  EXPECT_EQ(head_code(key("b")), StatusCode::kNotFound);
}

TEST_P(ObjectStoreContract, GetRangeAnswersOnceOnTheNamedExecutor) {
  must_put(key("a"), "0123456789");
  ThreadPool pool({.name = "contract", .threads = 1});
  std::atomic<std::thread::id> pool_thread;
  std::latch known(1);
  pool.resume([&] {
    pool_thread = std::this_thread::get_id();
    known.count_down();
  });
  known.wait();

  constexpr int kReads = 64;
  std::latch all(kReads);
  std::atomic<int> answers = 0;
  for (int i = 0; i < kReads; ++i) {
    // Every fourth one fails: failures are answered the same way.
    const ObjectKey k = i % 4 == 3 ? key("missing") : key("a");
    store().get_range(context(), {.key = k, .range = ByteRange{2, 3}},
                      Completion<GetResult>(pool, [&, i](Result<GetResult> result) {
                        EXPECT_EQ(std::this_thread::get_id(), pool_thread.load());
                        if (i % 4 == 3) {
                          EXPECT_EQ(result.error().code(), StatusCode::kNotFound);
                        } else {
                          EXPECT_EQ(result->data.text(), "234");
                        }
                        ++answers;
                        all.count_down();
                      }));
  }
  all.wait();
  pool.shutdown();
  EXPECT_EQ(answers, kReads);
}

}  // namespace millrace
