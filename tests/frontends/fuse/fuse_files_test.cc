#include "frontends/fuse/fuse_files.h"

#include <sys/mman.h>

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

namespace millrace {
namespace {

struct HeldCounts {
  std::atomic<int> asked = 0;
  std::atomic<int> held = 0;
};

class CountedObject final : public CompleteObject {
 public:
  explicit CountedObject(HeldCounts& counts) : counts_(counts) { ++counts_.held; }
  ~CountedObject() override { --counts_.held; }
  int descriptor() const override { return -1; }
  std::uint64_t size() const override { return kGiB; }

 private:
  HeldCounts& counts_;
};

// A file that is checked for as long as it is asked for `checks` times.
class CheckedFile final : public OpenFile {
 public:
  CheckedFile(HeldCounts& counts, int checks) : counts_(counts), checks_(checks) {}
  std::uint64_t size() const override { return kGiB; }
  NodeAttributes attributes() const override { return {}; }
  void read(const RequestContext&, ByteRange, Completion<Slice> done) override {
    done.complete(failure(StatusCode::kUnsupported, "nobody reads it"));
  }
  Result<std::unique_ptr<CompleteObject>> complete(const RequestContext&) override {
    if (++counts_.asked <= checks_) return failure(StatusCode::kUnavailable, "is being checked");
    return std::make_unique<CountedObject>(counts_);
  }
  void count_handed_out(const RequestContext&) override {}

 private:
  HeldCounts& counts_;
  const int checks_;
};

class OneFileTree final : public Tree {
 public:
  OneFileTree(HeldCounts& counts, int checks)
      : file_(std::make_shared<CheckedFile>(counts, checks)) {}
  Result<NodeAttributes> attributes(const RequestContext&, NodeNumber) override { return none(); }
  Result<NodeAttributes> lookup(const RequestContext&, NodeNumber, std::string_view) override {
    return none();
  }
  Result<NodeNumber> parent(const RequestContext&, NodeNumber) override { return none(); }
  Status read_directory(const RequestContext&, NodeNumber, std::uint64_t, const Visitor&) override {
    return none().error();
  }
  Result<std::string> read_link(const RequestContext&, NodeNumber) override { return none(); }
  Result<std::shared_ptr<OpenFile>> open(const RequestContext&, NodeNumber) override {
    return file_;
  }
  Result<std::vector<NodeFact>> facts(const RequestContext&, NodeNumber) override { return none(); }
  Result<TreeUsage> usage(const RequestContext&, NodeNumber) override { return none(); }

 private:
  static std::unexpected<Status> none() { return failure(StatusCode::kUnsupported, "one file"); }

  const std::shared_ptr<OpenFile> file_;
};

// After a take-over of a mount in which the kernel reads one file by itself.
class FuseFilesTest : public ::testing::Test {
 protected:
  std::unique_ptr<FuseFiles> taken_over(Tree& tree) {
    OpenTable table = OpenTable::create().value();
    handle = table.add({.unique = 2, .node = NodeNumber(10), .backing = 1}).value();
    auto files = std::make_unique<FuseFiles>(tree, device, std::move(table), true);
    files->resume();
    return files;
  }

  HeldCounts counts;
  const FuseDevice device{File::adopt(::memfd_create("device", MFD_CLOEXEC), "device")};
  const RequestContext context = RequestContext::background();
  std::uint64_t handle = 0;
};

TEST_F(FuseFilesTest, AFileIsHeldAgainWhenItsCheckIsOver) {
  OneFileTree tree(counts, 2);
  const auto files = taken_over(tree);
  files->hold_again(context);
  EXPECT_EQ(counts.asked, 3);
  EXPECT_EQ(counts.held, 1);
  files->release(handle);
  EXPECT_EQ(counts.held, 0);
}

TEST_F(FuseFilesTest, WaitingForACheckEndsWithTheService) {
  OneFileTree tree(counts, 1'000'000);
  const auto files = taken_over(tree);
  std::thread holding([&] { files->hold_again(context); });
  while (counts.asked == 0)
    std::this_thread::yield();
  context.cancellation().request();
  holding.join();
  EXPECT_EQ(counts.held, 0);
}

TEST_F(FuseFilesTest, WaitingForACheckEndsWithTheFile) {
  OneFileTree tree(counts, 1'000'000);
  const auto files = taken_over(tree);
  std::thread holding([&] { files->hold_again(context); });
  while (counts.asked == 0)
    std::this_thread::yield();
  files->release(handle);
  holding.join();
  EXPECT_EQ(counts.held, 0);
}

}  // namespace
}  // namespace millrace
