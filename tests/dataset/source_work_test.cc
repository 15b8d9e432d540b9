#include "dataset/source_work.h"

#include <atomic>
#include <set>

#include <gtest/gtest.h>

#include "base/mutex.h"

namespace millrace {
namespace {

TEST(SourceWork, HandlesWhatWorkMakes) {
  SourceWork<int> work(4);
  Mutex mutex;
  std::set<int> seen;
  work.add(1);
  // A binary heap: each number makes two, when there is room or not.
  const Status status = work.run("test", 5, [&](int number) {
    {
      MutexLock lock(mutex);
      EXPECT_TRUE(seen.insert(number).second);
    }
    for (int child : {2 * number, 2 * number + 1}) {
      if (child < 5000 && !work.try_add(child)) work.add(child);
    }
    return Status();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(seen.size(), 4999U);
}

TEST(SourceWork, EndsAtTheFirstFailure) {
  SourceWork<int> work(1000);
  for (int n = 0; n < 1000; ++n)
    work.add(n);
  std::atomic<int> handled = 0;
  const Status status = work.run("test", 3, [&](int) {
    return ++handled < 10 ? Status() : Status(StatusCode::kIoError, "the tenth");
  });
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_LT(handled.load(), 100);
}

TEST(SourceWork, IsDoneWithoutWork) {
  SourceWork<int> work(1);
  EXPECT_TRUE(work.run("test", 2, [](int) { return Status(StatusCode::kInternal, ""); }).ok());
}

}  // namespace
}  // namespace millrace
