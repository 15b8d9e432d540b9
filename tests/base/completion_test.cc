#include "base/completion.h"

#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "base/thread_pool.h"

namespace millrace {
namespace {

TEST(Completion, AnswersOnceOnItsExecutor) {
  ManualExecutor executor;
  int calls = 0;
  int value = 0;
  Completion<int> completion(executor, [&](Result<int> result) {
    ++calls;
    value = result.value_or(-1);
  });
  EXPECT_TRUE(completion);
  completion.complete(5);
  EXPECT_FALSE(completion);
  EXPECT_EQ(calls, 0) << "not inside complete()";
  executor.run_all();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(value, 5);
}

TEST(Completion, DestroyedUnansweredIsAnError) {
  std::vector<StatusCode> codes;
  const auto note = [&](Result<int> r) { codes.push_back(r ? StatusCode::kOk : r.error().code()); };
  {
    const Completion<int> dropped(inline_executor(), note);
  }
  EXPECT_EQ(codes, std::vector{StatusCode::kInternal});

  Completion<int> first(inline_executor(), note);
  Completion<int> second(inline_executor(), note);
  first = std::move(second);
  EXPECT_EQ(codes.size(), 2U) << "assigning over an owed answer answers it";
  first.complete(1);
  EXPECT_EQ(codes.size(), 3U);
  EXPECT_EQ(codes.back(), StatusCode::kOk);
}

TEST(Completion, MovedFromOwesNothing) {
  int calls = 0;
  {
    Completion<int> a(inline_executor(), [&](Result<int>) { ++calls; });
    Completion<int> b(std::move(a));
    EXPECT_TRUE(b);
    b.complete(1);
  }
  EXPECT_EQ(calls, 1);
}

TEST(Waiter, WaitsForAnAnswerFromAnotherThread) {
  ThreadPool pool({.name = "answer", .threads = 1});
  Waiter<std::string> waiter;
  pool.resume([c = waiter.completion()]() mutable { c.complete(std::string("here")); });
  EXPECT_EQ(waiter.wait(), "here");
}

TEST(Waiter, ALateAnswerFindsItsPlace) {
  Completion<int> completion;
  {
    Waiter<int> waiter;
    completion = waiter.completion();
  }
  completion.complete(1);
}

}  // namespace
}  // namespace millrace
