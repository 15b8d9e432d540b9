// What others could not have of a sampler's steps is in its states.

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "tests/abi/daemon_abi_world.h"

namespace millrace {
namespace {

constexpr std::size_t kStep = 10;
constexpr std::uint64_t kSteps = 12;

class SamplerLossesAbiTest : public DaemonAbiTest {
 protected:
  AbiJson skipping() const {
    AbiJson with = options();
    with["on_error"] = "skip";
    with["job"] = "training";
    return with;
  }
  void lose_two_samples() const {
    std::filesystem::remove(data.path("c1/007"));
    std::filesystem::remove(data.path("c2/000"));
  }
  // Deals a whole epoch, and has somebody read each step. Which of them lost a sample.
  template <class ReadStep>
  std::vector<std::uint64_t> deal_epoch(const AbiSampler& sampler, const ReadStep& read_step) {
    std::vector<std::uint64_t> losing;
    std::vector<std::uint64_t> dealt(kStep);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      std::size_t count = 0;
      expect_ok(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error));
      for (std::size_t missing = kStep - read_step(dealt); missing > 0; --missing)
        losing.push_back(step);
    }
    return losing;
  }
  // In another process, as the workers of a DataLoader do. How many samples it got.
  std::size_t read_forked(const AbiDataset& dataset, std::uint64_t epoch,
                          const std::vector<std::uint64_t>& places) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const AbiBatch batch = read(dataset, epoch, places);
      ::_exit(batch == nullptr ? 99 : static_cast<int>(mr_batch_samples(batch.get())));
    }
    int how = 0;
    EXPECT_EQ(::waitpid(pid, &how, 0), pid);
    EXPECT_TRUE(WIFEXITED(how) && WEXITSTATUS(how) <= static_cast<int>(kStep)) << how;
    return static_cast<std::size_t>(WEXITSTATUS(how));
  }
  std::string state_text(const AbiSampler& sampler, std::uint64_t step) {
    char* text = nullptr;
    expect_ok(mr_sampler_state(sampler.get(), step, &text, &error));
    return take_text(text);
  }
  static AbiJson lost_of(const std::string& state) {
    return AbiJson::parse(state.substr(state.find('{'))).value("lost", AbiJson({{"count", 0}}));
  }
};

TEST_F(SamplerLossesAbiTest, AreThoseOfTheStepsBefore) {
  const AbiDataset dataset = open(skipping());
  ASSERT_NE(dataset, nullptr);
  lose_two_samples();
  const AbiSampler sampler = sample(dataset, {{"batch", kStep}});
  const std::vector<std::uint64_t> losing =
      deal_epoch(sampler, [&](const auto& places) { return read_forked(dataset, 0, places); });
  ASSERT_EQ(losing.size(), 2u);
  for (std::uint64_t step = 0; step <= kSteps; ++step) {
    EXPECT_EQ(lost_of(state_text(sampler, step))["count"],
              std::ranges::count_if(losing, [&](std::uint64_t of) { return of < step; }))
        << "behind step " << step;
  }
  // A sample that is lost in every epoch counts each time, and is named once.
  std::size_t count = 0;
  std::vector<std::uint64_t> dealt(kStep);
  EXPECT_EQ(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error), MR_END);
  deal_epoch(sampler, [&](const auto& places) { return read_forked(dataset, 1, places); });
  const AbiJson lost = lost_of(state_text(sampler, kSteps));
  EXPECT_EQ(lost["count"], 4);
  EXPECT_EQ(lost["samples"].size(), 2u);
  // The same job, begun again from its middle: what lies behind it is lost again, not twice.
  const std::string middle = state_text(sampler, 0);
  EXPECT_EQ(lost_of(middle)["count"], 2);
  expect_ok(mr_sampler_load_state(sampler.get(), middle.c_str(), &error));
  EXPECT_EQ(lost_of(state_text(sampler, 0))["count"], 2);
  deal_epoch(sampler, [&](const auto& places) { return read_forked(dataset, 1, places); });
  EXPECT_EQ(lost_of(state_text(sampler, kSteps))["count"], 4);
}

TEST_F(SamplerLossesAbiTest, SurviveAKilledDaemon) {
  const AbiDataset dataset = open(skipping());
  ASSERT_NE(dataset, nullptr);
  lose_two_samples();
  const AbiSampler sampler = sample(dataset, {{"batch", kStep}});
  deal_epoch(sampler, [&](const auto& places) { return read_forked(dataset, 0, places); });
  EXPECT_EQ(lost_of(state_text(sampler, kSteps))["count"], 2);
  kill_daemon();
  EXPECT_EQ(lost_of(state_text(sampler, kSteps))["count"], 2);
}

TEST_F(SamplerLossesAbiTest, AreKnownWhereTheProcessReadsByItself) {
  engine = "process";
  const AbiDataset dataset = open(skipping());
  engine = "daemon";
  ASSERT_NE(dataset, nullptr);
  lose_two_samples();
  const AbiSampler sampler = sample(dataset, {{"batch", kStep}});
  deal_epoch(sampler,
             [&](const auto& places) { return mr_batch_samples(read(dataset, 0, places).get()); });
  EXPECT_EQ(lost_of(state_text(sampler, kSteps))["count"], 2);
}

TEST_F(SamplerLossesAbiTest, OfAnotherJobAreItsOwn) {
  const AbiDataset dataset = open(skipping());
  AbiJson with = skipping();
  with["job"] = "another";
  const AbiDataset other = open(with);
  ASSERT_NE(other, nullptr);
  lose_two_samples();
  const AbiSampler sampler = sample(dataset, {{"batch", kStep}});
  deal_epoch(sampler, [&](const auto& places) { return read_forked(other, 0, places); });
  EXPECT_EQ(lost_of(state_text(sampler, kSteps))["count"], 0);
}

}  // namespace
}  // namespace millrace
