#include <atomic>
#include <semaphore>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/log.h"
#include "base/manual_clock.h"
#include "objectstore/s3/cached_credentials.h"

namespace millrace::s3 {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

// Gives key1, key2, ... with a life of an hour, or fails when told to; can be held up.
class ScriptedProvider final : public CredentialProvider {
 public:
  explicit ScriptedProvider(Clock& clock) : clock_(clock) {}

  Result<Credentials> fetch(const RequestContext&) override {
    const int count = ++calls;
    if (hold) {
      entered.release();
      proceed.acquire();
    }
    if (fail) return failure(StatusCode::kUnavailable, "the source is away");
    return Credentials{.access_key = "key" + std::to_string(count),
                       .secret_key = "secret",
                       .session_token = "token",
                       .expires = clock_.wall_now() + life.load(),
                       .source = "script"};
  }
  std::string name() const override { return "script"; }

  std::atomic<int> calls = 0;
  std::atomic<bool> fail = false;
  std::atomic<bool> hold = false;
  std::atomic<Duration> life = Duration(1h);
  std::counting_semaphore<64> entered{0};
  std::counting_semaphore<64> proceed{0};

 private:
  Clock& clock_;
};

class CachedCredentialsTest : public ::testing::Test {
 protected:
  std::string key() {
    auto result = cached.get(RequestContext::background());
    return result ? (*result)->access_key : result.error().message();
  }

  ManualClock clock;
  ScriptedProvider* provider = new ScriptedProvider(clock);  // Owned by `cached`.
  CachedCredentials cached{std::unique_ptr<CredentialProvider>(provider), clock, system_random()};
};

TEST_F(CachedCredentialsTest, FetchesOnceAndRefreshesAtLeastFiveMinutesEarly) {
  EXPECT_EQ(cached.get_if_fresh(), nullptr);
  EXPECT_EQ(key(), "key1");
  clock.advance(52min);
  EXPECT_EQ(key(), "key1");
  EXPECT_NE(cached.get_if_fresh(), nullptr);
  clock.advance(3min);
  EXPECT_EQ(cached.get_if_fresh(), nullptr);  // Somebody has to begin the refresh.
  EXPECT_EQ(key(), "key2");
  EXPECT_EQ(provider->calls, 2);
}

TEST_F(CachedCredentialsTest, ShortLivesAreUsedForHalfOfThem) {
  provider->life = Duration(4min);
  EXPECT_EQ(key(), "key1");
  clock.advance(119s);
  EXPECT_EQ(key(), "key1");
  clock.advance(2s);
  EXPECT_EQ(key(), "key2");
}

TEST_F(CachedCredentialsTest, FailureKeepsTheOldOnesUntilTheyExpire) {
  EXPECT_EQ(key(), "key1");
  provider->fail = true;
  clock.advance(56min);
  const LogCapture log;
  EXPECT_EQ(key(), "key1");
  EXPECT_THAT(log.text(), HasSubstr("the source is away"));
  EXPECT_EQ(key(), "key1");
  EXPECT_NE(cached.get_if_fresh(), nullptr);
  EXPECT_EQ(provider->calls, 2) << "the pause after a failure was not kept";
  clock.advance(16s);
  EXPECT_EQ(key(), "key1");
  EXPECT_EQ(provider->calls, 3);
  clock.advance(4min);
  EXPECT_EQ(cached.get_if_fresh(), nullptr);
  EXPECT_EQ(key(), "the source is away");
  provider->fail = false;
  EXPECT_EQ(key(), "key5");
}

TEST_F(CachedCredentialsTest, CredentialsThatArriveExpiredAreAnError) {
  provider->life = Duration(-1s);
  EXPECT_THAT(key(), HasSubstr("expired at 2025-12-31T23:59:59Z"));
}

TEST_F(CachedCredentialsTest, InvalidateForcesOneRefreshAndOnlyForTheKeyAtHand) {
  EXPECT_EQ(key(), "key1");
  cached.invalidate("key0");
  EXPECT_EQ(key(), "key1");
  cached.invalidate("key1");
  EXPECT_EQ(cached.get_if_fresh(), nullptr);
  EXPECT_EQ(key(), "key2");
  cached.invalidate("key1");  // A late answer to an old request.
  EXPECT_EQ(key(), "key2");
  cached.invalidate("key2");
  provider->fail = true;
  EXPECT_EQ(key(), "the source is away");  // What the store refused is not used again.
}

TEST_F(CachedCredentialsTest, ManyFirstCallersShareOneFetch) {
  provider->hold = true;
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&] { good += key() == "key1"; });
  }
  provider->entered.acquire();
  provider->hold = false;
  provider->proceed.release();
  threads.clear();
  EXPECT_EQ(good, 16);
  EXPECT_EQ(provider->calls, 1);
}

TEST_F(CachedCredentialsTest, OthersGoOnWithValidOnesWhileOneRefreshes) {
  EXPECT_EQ(key(), "key1");
  clock.advance(56min);
  provider->hold = true;
  std::string refreshed;
  std::jthread refresher([&] { refreshed = key(); });
  provider->entered.acquire();
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(key(), "key1");
  EXPECT_EQ(cached.get_if_fresh()->access_key, "key1");
  provider->proceed.release();
  refresher.join();
  EXPECT_EQ(refreshed, "key2");
  EXPECT_EQ(provider->calls, 2);
}

TEST_F(CachedCredentialsTest, WaitersEndWithTheirOwnDeadlineOrCancellation) {
  provider->hold = true;
  std::jthread refresher([&] { EXPECT_EQ(key(), "key1"); });
  provider->entered.acquire();

  const RequestContext timed(clock.now() + 1s, "test");
  const RequestContext cancelled(TimePoint::max(), "test");
  std::jthread first(
      [&] { EXPECT_EQ(cached.get(timed).error().code(), StatusCode::kDeadlineExceeded); });
  std::jthread second(
      [&] { EXPECT_EQ(cached.get(cancelled).error().code(), StatusCode::kCancelled); });
  // The manual clock fires only what was armed before it moves.
  while (clock.armed_timers() == 0)
    std::this_thread::yield();
  clock.advance(2s);
  cancelled.cancellation().request();
  first.join();
  second.join();
  provider->proceed.release();
}

TEST_F(CachedCredentialsTest, WaitersDoNotInheritThatTheFetcherWasCancelled) {
  provider->hold = true;
  provider->fail = true;
  const RequestContext cancelled(TimePoint::max(), "test");
  std::jthread fetcher([&] { EXPECT_FALSE(cached.get(cancelled)); });
  provider->entered.acquire();
  std::string waited;
  std::jthread waiter([&] { waited = key(); });
  cancelled.cancellation().request();
  provider->proceed.release();
  provider->entered.acquire();  // The waiter makes a fetch of its own.
  provider->fail = false;
  provider->proceed.release();
  waiter.join();
  EXPECT_EQ(waited, "key2");
}

}  // namespace
}  // namespace millrace::s3
