#include "base/at_hand.h"

#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

using enum AtHandOnly::Reach;

TEST(AtHandOnly, WhoeverWouldWaitIsRefusedWhileItLives) {
  EXPECT_TRUE(AtHandOnly::may_wait().ok());
  {
    const AtHandOnly at_hand(kMemory);
    EXPECT_FALSE(at_hand.refused());
    EXPECT_TRUE(AtHandOnly::may_note().ok());
    EXPECT_EQ(AtHandOnly::may_wait(), StatusCode::kUnavailable);
    EXPECT_TRUE(at_hand.refused());
    EXPECT_EQ(AtHandOnly::may_note(), StatusCode::kUnavailable);
  }
  EXPECT_TRUE(AtHandOnly::may_wait().ok());
  EXPECT_TRUE(AtHandOnly::may_note().ok());
}

TEST(AtHandOnly, TheDiskIsAtHandForThoseWhoReachIt) {
  EXPECT_TRUE(AtHandOnly::may_wait_for_disk().ok());
  {
    const AtHandOnly near(kMemory);
    EXPECT_EQ(AtHandOnly::may_wait_for_disk(), StatusCode::kUnavailable);
    EXPECT_TRUE(near.refused());
    const AtHandOnly inner(kDisk);
    EXPECT_FALSE(AtHandOnly::may_wait_for_disk().ok()) << "the shortest reach counts";
  }
  const AtHandOnly far(kDisk);
  EXPECT_TRUE(AtHandOnly::may_wait_for_disk().ok());
  EXPECT_FALSE(far.refused());
  EXPECT_EQ(AtHandOnly::may_wait(), StatusCode::kUnavailable);
  EXPECT_TRUE(far.refused());
}

TEST(AtHandOnly, TheInnermostIsTold) {
  const AtHandOnly outer(kMemory);
  {
    const AtHandOnly inner(kMemory);
    EXPECT_FALSE(AtHandOnly::may_wait().ok());
    EXPECT_TRUE(inner.refused());
  }
  EXPECT_FALSE(outer.refused());
  EXPECT_FALSE(AtHandOnly::may_wait().ok());
  EXPECT_TRUE(outer.refused());
}

TEST(AtHandOnly, OtherThreadsMayWait) {
  const AtHandOnly at_hand(kMemory);
  std::thread([] { EXPECT_TRUE(AtHandOnly::may_wait().ok()); }).join();
  EXPECT_FALSE(at_hand.refused());
}

}  // namespace
}  // namespace millrace
