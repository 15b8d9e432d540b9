#include "loader/lost_places.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

SampleLoss loss_at(std::uint64_t epoch, std::uint64_t position,
                   FaultAction action = FaultAction::kSkip) {
  return {.epoch = epoch,
          .failure = {.place = {.position = position, .source = 1, .sample = position + 100}},
          .action = action};
}

TEST(LostPlacesTest, HasEachPlaceOnceInTheOrderOfTheEpochs) {
  LostPlaces lost;
  lost.add({loss_at(1, 3), loss_at(0, 7, FaultAction::kSubstitute)});
  lost.add({loss_at(1, 3), loss_at(1, 2)});
  const std::vector<LostPlace> expected = {{.epoch = 0, .position = 7, .source = 1, .sample = 107},
                                           {.epoch = 1, .position = 2, .source = 1, .sample = 102},
                                           {.epoch = 1, .position = 3, .source = 1, .sample = 103}};
  EXPECT_EQ(lost.all(), expected);
}

TEST(LostPlacesTest, WhatEndedInAFailureIsNotLost) {
  LostPlaces lost;
  lost.add({loss_at(0, 1, FaultAction::kRaise)});
  EXPECT_TRUE(lost.all().empty());
}

TEST(LostPlacesTest, ForgetsTheFirstOfTooMany) {
  LostPlaces lost;
  for (std::uint64_t position = 0; position < LostPlaces::kPlacesMax + 5; ++position)
    lost.add({loss_at(0, position)});
  EXPECT_EQ(lost.all().size(), LostPlaces::kPlacesMax);
  EXPECT_EQ(lost.all().front().position, 5u);
}

}  // namespace
}  // namespace millrace
