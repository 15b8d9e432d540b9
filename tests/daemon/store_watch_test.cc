#include "daemon/store_watch.h"

#include <thread>

#include <gmock/gmock.h>

#include "base/log.h"
#include "base/manual_clock.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

// A store that fails with a code until it has been asked `failures` times.
class StoreWatchTest : public ::testing::Test {
 protected:
  FaultyObjectStore store_failing(std::uint64_t failures, StatusCode code) {
    const auto plan = [failures, code](const FaultableCall& call) -> std::optional<Fault> {
      if (call.number > failures) return std::nullopt;
      return Fault{.code = code};
    };
    return FaultyObjectStore(std::make_shared<MemoryObjectStore>(), plan, clock_,
                             inline_executor());
  }
  static StoreWatch::State wait_for(const StoreWatch& watch, bool answers) {
    const TimePoint deadline = system_clock().now() + std::chrono::seconds(60);
    while (system_clock().now() < deadline) {
      const StoreWatch::State state = watch.state();
      if (state.asked && state.answers == answers) return state;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "the store was not asked in a minute";
    return {};
  }

  // Pauses are over at once.
  ManualClock clock_;
};

TEST_F(StoreWatchTest, AsksAgainUntilTheStoreAnswers) {
  const LogCapture log(LogLevel::kInfo);
  FaultyObjectStore store = store_failing(3, StatusCode::kUnavailable);
  const TimePoint begin = clock_.now();
  const StoreWatch watch(store, clock_);
  EXPECT_EQ(wait_for(watch, true).error, "");
  EXPECT_GE(clock_.now() - begin, std::chrono::seconds(15));
  EXPECT_GE(store.calls(), 4U);
  const std::string text = log.text();
  EXPECT_THAT(text, HasSubstr("the store does not answer"));
  EXPECT_THAT(text, HasSubstr("the store answers again"));
  EXPECT_EQ(text.find("does not answer"), text.rfind("does not answer")) << "told once";
}

TEST_F(StoreWatchTest, TakesARefusalForAnAnswerAndKeepsWhatItSaid) {
  FaultyObjectStore store = store_failing(UINT64_MAX, StatusCode::kPermissionDenied);
  const StoreWatch watch(store, clock_);
  EXPECT_NE(wait_for(watch, true).error, "");
}

}  // namespace
}  // namespace millrace
