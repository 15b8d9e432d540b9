#include "frontends/nfs4/nfs_whole_files.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/manual_executor.h"

namespace millrace {
namespace {

class FiveBytes final : public CompleteObject {
 public:
  int descriptor() const override { return -1; }
  std::uint64_t size() const override { return 5; }
};

// Is whole or not, as a test says, and counts who asks.
class MaybeWholeFile final : public OpenFile {
 public:
  std::uint64_t size() const override { return 5; }
  NodeAttributes attributes() const override { return {}; }
  void read(const RequestContext& /*context*/, ByteRange /*range*/,
            Completion<Slice> done) override {
    done.complete(Slice::copy_of("bytes"));
  }
  Result<std::unique_ptr<CompleteObject>> complete(const RequestContext& context) override {
    ++asked;
    EXPECT_FALSE(context.cancellation().requested()) << "its client is not waited for";
    if (!whole) return failure(StatusCode::kNotFound, "some of it is missing");
    return std::make_unique<FiveBytes>();
  }
  void count_handed_out(const RequestContext& /*context*/) override { ++handed_out; }

  bool whole = true;
  int handed_out = 0;
  int asked = 0;
};

class NfsWholeFilesTest : public ::testing::Test {
 protected:
  void look(NodeNumber node) { wholes_.look(node, file_, RequestContext::background()); }

  ManualClock clock_;
  ManualExecutor work_;
  const std::shared_ptr<MaybeWholeFile> file_ = std::make_shared<MaybeWholeFile>();
  const NodeNumber node_{7};
  NfsWholeFiles wholes_{clock_, work_};
};

TEST_F(NfsWholeFilesTest, IsFoundOnceSomebodyHasLooked) {
  EXPECT_EQ(wholes_.find(node_), nullptr);
  look(node_);
  EXPECT_EQ(file_->asked, 0) << "who asks does not wait";
  EXPECT_EQ(wholes_.find(node_), nullptr);
  work_.run_all();
  const auto found = wholes_.find(node_);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->size(), 5U);
  EXPECT_EQ(wholes_.find(NodeNumber(8)), nullptr);
}

TEST_F(NfsWholeFilesTest, OfManyWhoAskOneLooks) {
  for (int i = 0; i < 10; ++i)
    look(node_);
  work_.run_all();
  look(node_);
  work_.run_all();
  EXPECT_EQ(file_->asked, 1);
}

TEST_F(NfsWholeFilesTest, AClientThatHasGoneCallsNothingOff) {
  const RequestContext gone(TimePoint::max(), "somebody");
  wholes_.look(node_, file_, gone);
  gone.cancellation().request();
  work_.run_all();
  EXPECT_NE(wholes_.find(node_), nullptr);
}

TEST_F(NfsWholeFilesTest, WhatIsNotWholeIsLookedAtAgainLater) {
  file_->whole = false;
  look(node_);
  work_.run_all();
  EXPECT_EQ(wholes_.find(node_), nullptr);
  file_->whole = true;
  look(node_);
  work_.run_all();
  EXPECT_EQ(file_->asked, 1) << "not with every read";
  clock_.advance(std::chrono::seconds(5));
  look(node_);
  work_.run_all();
  EXPECT_NE(wholes_.find(node_), nullptr);
}

TEST_F(NfsWholeFilesTest, WhatNobodyReadsIsLetGo) {
  look(node_);
  look(NodeNumber(8));
  work_.run_all();
  const std::weak_ptr<const CompleteObject> unused = wholes_.find(NodeNumber(8));
  clock_.advance(std::chrono::seconds(45));
  EXPECT_NE(wholes_.find(node_), nullptr);
  clock_.advance(std::chrono::seconds(45));
  wholes_.sweep();
  EXPECT_NE(wholes_.find(node_), nullptr);
  EXPECT_EQ(wholes_.find(NodeNumber(8)), nullptr);
  EXPECT_TRUE(unused.expired()) << "the cache may have its bytes back";
}

TEST_F(NfsWholeFilesTest, ThereAreOnlySoMany) {
  for (std::uint64_t i = 1; i <= 2000; ++i)
    look(NodeNumber(i));
  work_.run_all();
  EXPECT_EQ(wholes_.size(), 1024U) << "each is a descriptor";
  clock_.advance(std::chrono::minutes(2));
  wholes_.sweep();
  look(NodeNumber(2000));
  work_.run_all();
  EXPECT_NE(wholes_.find(NodeNumber(2000)), nullptr);
}

}  // namespace
}  // namespace millrace
