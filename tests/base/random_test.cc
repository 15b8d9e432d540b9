#include "base/random.h"

#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace millrace {
namespace {

TEST(SeededRandom, GivesTheSameNumbersEverywhere) {
  // The published first outputs of SplitMix64 for seed 1234567.
  SeededRandom random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317U);
  EXPECT_EQ(random.next(), 3203168211198807973U);
  EXPECT_EQ(random.next(), 9817491932198370423U);
}

TEST(SeededRandom, ThreadsShareTheSequence) {
  SeededRandom shared(3);
  std::vector<std::vector<std::uint64_t>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i)
        mine.push_back(shared.next());
    });
  }
  for (auto& thread : threads)
    thread.join();
  std::set<std::uint64_t> all;
  for (const auto& mine : drawn)
    all.insert(mine.begin(), mine.end());
  SeededRandom alone(3);
  std::set<std::uint64_t> want;
  for (int i = 0; i < 2000; ++i)
    want.insert(alone.next());
  EXPECT_EQ(all, want);
}

TEST(Random, UniformStaysBelowOneAndSpreads) {
  SeededRandom random(4);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) {
    const double value = random.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
  }
  EXPECT_NEAR(sum / 10'000, 0.5, 0.02);
}

TEST(SystemRandom, TokensAreUniqueHexadecimal) {
  std::set<std::string> tokens;
  for (int i = 0; i < 1000; ++i) {
    const std::string token = system_random().token();
    ASSERT_EQ(token.size(), 32U);
    ASSERT_EQ(token.find_first_not_of("0123456789abcdef"), std::string::npos);
    tokens.insert(token);
  }
  EXPECT_EQ(tokens.size(), 1000U);
}

TEST(SystemRandom, AForkedChildDrawsItsOwnNumbers) {
  system_random().next();  // So that unused numbers are there to be repeated.
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const std::uint64_t value = system_random().next();
    _exit(write(ends[1], &value, sizeof(value)) == sizeof(value) ? 0 : 1);
  }
  std::uint64_t of_child = 0;
  ASSERT_EQ(read(ends[0], &of_child, sizeof(of_child)), static_cast<ssize_t>(sizeof(of_child)));
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  close(ends[0]);
  close(ends[1]);
  EXPECT_NE(system_random().next(), of_child);
}

}  // namespace
}  // namespace millrace
