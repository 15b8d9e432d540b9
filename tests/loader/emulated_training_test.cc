// Trainings without accelerators, over an engine that always has its samples.

#include "loader/emulated_training.h"

#include <gtest/gtest.h>

namespace millrace {
namespace {

// Samples without content, at once; one of them cannot be had.
class ReadyEngine final : public BatchEngine {
 public:
  explicit ReadyEngine(std::uint64_t samples) {
    facts_.push_back({.reader = "files",
                      .samples = samples,
                      .bytes = samples,
                      .stretches = {{.samples = samples, .bytes = samples}}});
  }
  std::string_view kind() const override { return "ready"; }
  const std::vector<SourceFacts>& sources() const override { return facts_; }
  Result<BatchAnswer> read(const RequestContext&, std::uint64_t epoch,
                           std::span<const PlacedSample> places) override {
    std::vector<ReadSample> samples;
    BatchAnswer answer;
    for (const PlacedSample& place : places) {
      samples.push_back({.place = place, .key = "key"});
      if (place.sample == bad_sample) {
        answer.failed.push_back({.place = place, .why = {StatusCode::kCorruption, "bad"}});
      }
    }
    if (!answer.failed.empty()) return answer;
    MR_ASSIGN_OR_RETURN(answer.batch, build_batch(memory_, epoch, samples, {}));
    return answer;
  }
  std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller>) override {
    return std::make_unique<NoPlan>();
  }

  std::uint64_t bad_sample = ~std::uint64_t{0};

 private:
  class NoPlan final : public BatchPlan {
   public:
    void extend(const RequestContext&, std::span<const PlannedSample>) override {}
    void advance(std::uint64_t) override {}
  };

  std::vector<SourceFacts> facts_;
  BatchMemoryPool memory_;
};

std::shared_ptr<const LoaderJob> job_of(const ReadyEngine& engine) {
  JobChoice choice;
  choice.sources.push_back({.name = "x@v1"});
  return LoaderJob::make(std::move(choice), engine.sources()).value();
}

TEST(EmulatedTrainingTest, CountsStepsOverEpochsWithoutTheFirst) {
  const auto engine = std::make_shared<ReadyEngine>(64);
  const auto report =
      emulate_training(RequestContext::background(), engine, job_of(*engine),
                       {.accelerators = 2, .batch = 8, .step = {}, .steps_max = 10});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->steps, 10u);
  EXPECT_EQ(report->samples, 2u * 10 * 8) << "epochs of four steps follow one another";
  EXPECT_GT(report->bytes, 0u);
  EXPECT_EQ(report->utilisation, 0) << "nothing was computed";
}

TEST(EmulatedTrainingTest, FailsAsLoadersDo) {
  const auto engine = std::make_shared<ReadyEngine>(8);
  EXPECT_EQ(emulate_training(RequestContext::background(), engine, job_of(*engine),
                             {.accelerators = 9, .batch = 1})
                .error()
                .code(),
            StatusCode::kInvalidArgument);
  engine->bad_sample = 3;
  EXPECT_EQ(emulate_training(RequestContext::background(), engine, job_of(*engine),
                             {.accelerators = 1, .batch = 8, .steps_max = 1})
                .error()
                .code(),
            StatusCode::kCorruption);
}

TEST(EmulatedTrainingTest, HasWhatMlperfSays) {
  ASSERT_EQ(training_workloads().size(), 3u);
  EXPECT_EQ(training_workloads()[1].name, "resnet50");
  EXPECT_EQ(training_workloads()[1].batch, 400u);
  EXPECT_EQ(training_workloads()[1].step_h100, std::chrono::milliseconds(224));
}

}  // namespace
}  // namespace millrace
