#include "platform/event_loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/completion.h"

namespace millrace {
namespace {

// Runs `work` on the loop and waits for it.
void on_loop(EventLoop& loop, std::function<void()> work) {
  Waiter<bool> done;
  loop.resume([work = std::move(work), answer = done.completion()]() mutable {
    work();
    answer.complete(true);
  });
  ASSERT_TRUE(done.wait().has_value());
}

class SocketPair {
 public:
  SocketPair() { EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_.data()), 0); }
  ~SocketPair() {
    close_far();
    if (fds_[0] >= 0) ::close(fds_[0]);
  }
  int near() const { return fds_[0]; }
  void send(std::string_view text) {
    EXPECT_EQ(::send(fds_[1], text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }
  std::string receive() {
    std::array<char, 64> buffer;
    const ssize_t got = ::recv(fds_[0], buffer.data(), buffer.size(), 0);
    return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : "";
  }
  void close_far() {
    if (fds_[1] >= 0) ::close(std::exchange(fds_[1], -1));
  }

 private:
  std::array<int, 2> fds_{-1, -1};
};

TEST(EventLoop, RunsTasksInOrderOnItsOwnThread) {
  EventLoop loop("test");
  std::vector<int> order;
  bool own_thread = true;
  for (int i = 0; i < 1000; ++i) {
    loop.resume([&, i] {
      order.push_back(i);
      own_thread = own_thread && loop.on_loop_thread();
    });
  }
  on_loop(loop, [] {});
  ASSERT_EQ(order.size(), 1000U);
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_TRUE(own_thread);
  EXPECT_FALSE(loop.on_loop_thread());
}

TEST(EventLoop, RefusesWorkBeyondItsQueueButTakesContinuations) {
  EventLoop loop("test", /*queued_tasks_max=*/2);
  Waiter<bool> release;
  Waiter<bool> blocked;
  loop.resume([&] {
    blocked.completion().complete(true);
    (void)release.wait();
  });
  ASSERT_TRUE(blocked.wait().has_value());
  std::atomic<int> ran = 0;
  EXPECT_TRUE(loop.submit([&] { ++ran; }).ok());
  EXPECT_TRUE(loop.submit([&] { ++ran; }).ok());
  const Status refused = loop.submit([&] { ++ran; });
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(refused.message().find("'test'"), std::string::npos);
  loop.resume([&] { ++ran; });
  release.completion().complete(true);
  on_loop(loop, [] {});
  EXPECT_EQ(ran, 3);
}

TEST(EventLoop, RunsQueuedTasksBeforeItStops) {
  std::atomic<int> ran = 0;
  {
    EventLoop loop("test");
    for (int i = 0; i < 100; ++i)
      loop.resume([&] { ++ran; });
  }
  EXPECT_EQ(ran, 100);
}

TEST(EventLoop, TellsWhenADescriptorIsReadable) {
  EventLoop loop("test");
  SocketPair pair;
  Waiter<std::string> got;
  on_loop(loop, [&] {
    loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t ready) {
      EXPECT_EQ(ready, EventLoop::kRead);
      loop.unwatch(pair.near());
      got.completion().complete(pair.receive());
    });
  });
  pair.send("hello");
  EXPECT_EQ(got.wait(), "hello");
}

TEST(EventLoop, APausedDescriptorIsSilentAndWakesAgain) {
  EventLoop loop("test");
  SocketPair pair;
  std::atomic<int> calls = 0;
  std::atomic<int> told_of_unwanted = 0;
  Waiter<std::string> got;
  on_loop(loop, [&] {
    loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t ready) {
      if (ready == 0) {
        ++told_of_unwanted;
        return;
      }
      ++calls;
      loop.unwatch(pair.near());
      got.completion().complete(pair.receive());
    });
    loop.set_interest(pair.near(), 0);
  });
  pair.send("later");
  // Several rounds pass with data waiting: the first meets the unwanted event, the rest find none.
  for (int i = 0; i < 10; ++i)
    on_loop(loop, [] {});
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(told_of_unwanted, 1);
  on_loop(loop, [&] { loop.set_interest(pair.near(), EventLoop::kRead); });
  EXPECT_EQ(got.wait(), "later");
  EXPECT_EQ(calls, 1);
}

TEST(EventLoop, APausedDescriptorThatHangsUpDoesNotSpinTheLoop) {
  EventLoop loop("test");
  SocketPair pair;
  std::atomic<int> calls = 0;
  on_loop(loop, [&] {
    loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t) { ++calls; });
    loop.set_interest(pair.near(), 0);
  });
  pair.close_far();
  for (int i = 0; i < 10; ++i)
    on_loop(loop, [] {});
  EXPECT_EQ(calls, 1) << "told once that something arrived";
  Waiter<bool> hung_up;
  on_loop(loop, [&] {
    loop.unwatch(pair.near());
    loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t ready) {
      EXPECT_EQ(ready, EventLoop::kRead | EventLoop::kWrite);
      loop.unwatch(pair.near());
      hung_up.completion().complete(true);
    });
  });
  EXPECT_TRUE(hung_up.wait().has_value());
}

TEST(EventLoop, TimersFireInOrderAndNotBeforeTheirTime) {
  EventLoop loop("test");
  std::vector<int> fired;
  Waiter<bool> last;
  const TimePoint start = system_clock().now();
  on_loop(loop, [&] {
    using std::chrono::milliseconds;
    loop.run_at(start + milliseconds(20), [&] {
      fired.push_back(2);
      last.completion().complete(true);
    });
    loop.run_at(start + milliseconds(5), [&] { fired.push_back(1); });
    const auto cancelled = loop.run_at(start + milliseconds(10), [&] { fired.push_back(99); });
    loop.cancel_timer(cancelled);
    loop.cancel_timer(cancelled);  // Harmless the second time.
  });
  ASSERT_TRUE(last.wait().has_value());
  EXPECT_EQ(fired, (std::vector<int>{1, 2}));
  EXPECT_GE(system_clock().now(), start + std::chrono::milliseconds(20));
}

TEST(EventLoop, AWatchMayReplaceItselfWhileItRuns) {
  EventLoop loop("test");
  SocketPair pair;
  Waiter<bool> second;
  on_loop(loop, [&] {
    loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t) {
      loop.unwatch(pair.near());
      loop.watch(pair.near(), EventLoop::kRead, [&](std::uint32_t) {
        loop.unwatch(pair.near());
        second.completion().complete(true);
      });
    });
  });
  pair.send("x");
  EXPECT_TRUE(second.wait().has_value());
}

TEST(EventLoop, ManyThreadsPostAtOnce) {
  EventLoop loop("test");
  std::uint64_t sum = 0;  // Touched by the loop only.
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i)
        loop.resume([&sum] { ++sum; });
    });
  }
  for (auto& thread : threads)
    thread.join();
  on_loop(loop, [] {});
  EXPECT_EQ(sum, 40000U);
}

}  // namespace
}  // namespace millrace
