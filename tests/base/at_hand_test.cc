#include "base/at_hand.h"

#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(AtHandOnly, WhoeverWouldWaitIsRefusedWhileItLives) {
  EXPECT_TRUE(AtHandOnly::may_wait().ok());
  {
    const AtHandOnly at_hand;
    EXPECT_FALSE(at_hand.refused());
    EXPECT_EQ(AtHandOnly::may_wait(), StatusCode::kUnavailable);
    EXPECT_TRUE(at_hand.refused());
  }
  EXPECT_TRUE(AtHandOnly::may_wait().ok());
}

TEST(AtHandOnly, TheInnermostIsTold) {
  const AtHandOnly outer;
  {
    const AtHandOnly inner;
    EXPECT_FALSE(AtHandOnly::may_wait().ok());
    EXPECT_TRUE(inner.refused());
  }
  EXPECT_FALSE(outer.refused());
  EXPECT_FALSE(AtHandOnly::may_wait().ok());
  EXPECT_TRUE(outer.refused());
}

TEST(AtHandOnly, OtherThreadsMayWait) {
  const AtHandOnly at_hand;
  std::thread([] { EXPECT_TRUE(AtHandOnly::may_wait().ok()); }).join();
  EXPECT_FALSE(at_hand.refused());
}

}  // namespace
}  // namespace millrace
