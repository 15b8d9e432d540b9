#include "dataset/pack_tally.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(PackTally, TakesAsManyPacksAsItMayAndGoesOnBehindThem) {
  std::optional<std::string> after = "";
  int rounds = 0;
  while (after) {
    PackTally tally(*after);
    for (std::size_t n = PackTally::kPacksMax * 2 + 10; n-- > 0;)
      tally.add(fmt::format("{:08}", n), 1'000'000);
    EXPECT_TRUE(tally.thin().empty());  // Nobody needs anything of them.
    after = tally.next();
    ++rounds;
  }
  EXPECT_EQ(rounds, 3);
  PackTally tally("");
  tally.add("large", PackTally::kPackBytesMax + 1);
  tally.add("empty", 0);
  EXPECT_TRUE(tally.empty());
}

}  // namespace
}  // namespace millrace
