// Samples that cannot be had: what counts as a row of them, and who stands in.

#include <filesystem>

#include <gmock/gmock.h>

#include "tests/abi/abi_world.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int kFiles = 60;

class SampleFailuresAbiTest : public AbiWorld {
 protected:
  SampleFailuresAbiTest() { make_files(1, kFiles); }
  AbiDataset open_in_order() {
    AbiJson with = options();
    with["order"] = "none";
    return open(with);
  }
  void lose(int number) const {
    std::filesystem::remove(data.path(fmt::format("c0/{:03}", number)));
  }
};

TEST_F(SampleFailuresAbiTest, AreCountedInARowWhateverTheBatch) {
  const AbiDataset dataset = open_in_order();
  for (int n = 0; n < kFiles; n += 3)
    lose(n);
  for (const int batch : {10, kFiles}) {
    const AbiLoader loader = load(
        dataset, {{"batch", batch}, {"on_error", "skip"}, {"failures_max", 2}, {"prefetch", 1}});
    EXPECT_THAT(keys_of_epoch(loader), SizeIs(40)) << "batches of " << batch;
    EXPECT_EQ(failure_text, "");
  }
}

TEST_F(SampleFailuresAbiTest, ARowGoesOnFromBatchToBatch) {
  const AbiDataset dataset = open_in_order();
  for (int n = 8; n < 14; ++n)
    lose(n);
  for (const int batch : {10, kFiles}) {
    const AbiLoader loader = load(
        dataset, {{"batch", batch}, {"on_error", "skip"}, {"failures_max", 6}, {"prefetch", 1}});
    keys_of_epoch(loader);
    EXPECT_THAT(failure_text, HasSubstr("6 samples in a row cannot be had")) << batch;
    failure_text.clear();
    const AbiLoader patient = load(
        dataset, {{"batch", batch}, {"on_error", "skip"}, {"failures_max", 7}, {"prefetch", 1}});
    EXPECT_THAT(keys_of_epoch(patient), SizeIs(kFiles - 6));
    EXPECT_EQ(failure_text, "");
  }
}

TEST_F(SampleFailuresAbiTest, ASubstituteIsLookedForSoFar) {
  const AbiDataset dataset = open_in_order();
  for (int n = 8; n < 14; ++n)
    lose(n);
  const AbiLoader loader =
      load(dataset, {{"batch", kFiles}, {"on_error", "substitute"}, {"failures_max", 6}});
  EXPECT_EQ(next(loader), nullptr);
  EXPECT_THAT(failure_text, HasSubstr("6 samples in a row cannot be had"));
  const AbiLoader patient =
      load(dataset, {{"batch", kFiles}, {"on_error", "substitute"}, {"failures_max", 7}});
  EXPECT_THAT(keys_of_epoch(patient), SizeIs(kFiles));
}

TEST_F(SampleFailuresAbiTest, APositionThatStandsTwiceInABatchHasOneSubstitute) {
  for (int n = 3; n < kFiles; ++n)
    lose(n);
  const AbiDataset dataset = open_in_order();
  lose(1);
  const AbiLoader loader =
      load(dataset, {{"batch", 9}, {"on_error", "substitute"}, {"last", "pad"}});
  EXPECT_THAT(keys_of_epoch(loader), ElementsAre("c0/000", "c0/002", "c0/002", "c0/000", "c0/002",
                                                 "c0/002", "c0/000", "c0/002", "c0/002"));
  EXPECT_EQ(failure_text, "");
}

TEST_F(SampleFailuresAbiTest, ADirectoryThatWasReplacedIsOpenedAnew) {
  const AbiDataset before = open_in_order();
  ASSERT_EQ(mr_dataset_samples(before.get()), kFiles);
  const std::string moved = home.path("moved");
  std::filesystem::rename(data.root(), moved);
  data.write("c9/new", "another content");
  const AbiDataset after = open_in_order();
  ASSERT_NE(after, nullptr);
  const AbiBatch added = read(after, 0, {0});
  ASSERT_NE(added, nullptr) << failure_text;
  EXPECT_THAT(texts(added, "__key__"), ElementsAre("c9/new"));
  // What it was opened with is gone, for who has it open.
  EXPECT_EQ(read(before, 0, {0}), nullptr);
  EXPECT_THAT(failure_text, HasSubstr("no object 'c0/000'"));
}

}  // namespace
}  // namespace millrace
