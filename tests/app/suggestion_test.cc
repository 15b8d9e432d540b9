#include "app/suggestion.h"

#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(Suggestion, FindsTheWordThatWasMeant) {
  const std::vector<std::string> words = {"store", "doctor", "config", "ls", "rm"};
  EXPECT_EQ(nearest_word("stroe", words), "store");
  EXPECT_EQ(nearest_word("docter", words), "doctor");
  EXPECT_EQ(nearest_word("sl", words), "ls");
  EXPECT_EQ(nearest_word("zebra", words), "");
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(10'000, 'x'), words), "");
  EXPECT_EQ(did_you_mean("stroe", words), ", did you mean 'store'?");
}

}  // namespace
}  // namespace millrace
