#include "base/thread_pool.h"

#include <pthread.h>

#include <atomic>
#include <latch>
#include <set>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(ThreadPool, NamesItsThreads) {
  ThreadPool pool({.name = "a-rather-long-name", .threads = 1});
  std::string name;
  std::latch done(1);
  pool.resume([&] {
    char buffer[16];
    pthread_getname_np(pthread_self(), buffer, sizeof(buffer));
    name = buffer;
    done.count_down();
  });
  done.wait();
  EXPECT_EQ(name, "a-rather-long-n");
  EXPECT_EQ(pool.name(), "a-rather-long-name");
}

TEST(ThreadPool, RunsInParallel) {
  constexpr int kThreads = 4;
  // Every task waits for all others: with fewer threads this would never end. The latch outlives
  // the pool, since a task may still be inside it when the test's own wait is over.
  std::latch all(kThreads + 1);
  ThreadPool pool({.name = "p", .threads = kThreads});
  for (int i = 0; i < kThreads; ++i) {
    ASSERT_TRUE(pool.submit([&] { all.arrive_and_wait(); }).ok());
  }
  all.arrive_and_wait();
}

TEST(ThreadPool, RefusesWhenTheQueueIsFullAndResumeIsNotCounted) {
  ThreadPool pool({.name = "small", .threads = 1, .queued_tasks_max = 2});
  std::latch running(1);
  std::latch release(1);
  std::atomic<int> runs = 0;
  ASSERT_TRUE(pool.submit([&] {
                    running.count_down();
                    release.wait();
                  })
                  .ok());
  running.wait();
  for (int i = 0; i < 8; ++i)
    pool.resume([&] { ++runs; });
  EXPECT_TRUE(pool.submit([&] { ++runs; }).ok());
  EXPECT_TRUE(pool.submit([&] { ++runs; }).ok());
  const Status refused = pool.submit([&] { runs += 1000; });
  EXPECT_EQ(refused, StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("small"), std::string::npos);
  release.count_down();
  pool.shutdown();
  EXPECT_EQ(runs, 10) << "the refused task never runs, all others do";
}

TEST(ThreadPool, ShutdownDrainsThenRunsOnTheCaller) {
  ThreadPool pool({.name = "p", .threads = 2});
  std::atomic<int> runs = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pool.submit([&] {
                      ++runs;
                      pool.resume([&] { ++runs; });
                    })
                    .ok());
  }
  pool.shutdown();
  EXPECT_EQ(runs, 200) << "also what was queued while draining";
  pool.shutdown();
  EXPECT_EQ(pool.submit([&] { ++runs; }), StatusCode::kResourceExhausted);
  std::thread::id where;
  pool.resume([&] { where = std::this_thread::get_id(); });
  EXPECT_EQ(where, std::this_thread::get_id());
  EXPECT_EQ(runs, 200);
}

TEST(ThreadPool, KeepsOrderOnOneThread) {
  std::vector<int> order;
  {
    ThreadPool pool({.name = "p", .threads = 1});
    for (int i = 0; i < 100; ++i)
      pool.resume([&order, i] { order.push_back(i); });
  }
  ASSERT_EQ(order.size(), 100U);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(order[i], i);
}

TEST(ThreadPool, MayBeShutDownFromManyThreadsAtOnce) {
  ThreadPool pool({.name = "p", .threads = 2});
  std::atomic<int> runs = 0;
  for (int i = 0; i < 50; ++i)
    pool.resume([&] { ++runs; });
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      pool.shutdown();
      EXPECT_EQ(runs, 50);
    });
  }
  for (auto& thread : threads)
    thread.join();
}

TEST(ThreadPool, MayBeDestroyedRightAfterItsLastTaskSignals) {
  for (int i = 0; i < 200; ++i) {
    std::latch done(1);
    ThreadPool pool({.name = "p", .threads = 2});
    ASSERT_TRUE(pool.submit([&] { done.count_down(); }).ok());
    done.wait();
  }
}

}  // namespace
}  // namespace millrace
