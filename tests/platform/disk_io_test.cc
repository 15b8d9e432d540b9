// The contract of DiskIo, for each engine that runs here, and how one is chosen.

#include "platform/disk_io.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <latch>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_executor.h"
#include "base/thread_pool.h"
#include "platform/memory_disk.h"
#include "platform/path.h"
#include "platform/posix_disk.h"
#include "platform/threaded_disk_io.h"
#if MILLRACE_WITH_URING
#include "platform/uring_disk_io.h"
#endif

namespace millrace {
namespace {

const RequestContext kContext = RequestContext::background();

class DiskIoContract : public ::testing::TestWithParam<DiskIoPreference> {
 protected:
  DiskIoContract() {
    std::string pattern = ::testing::TempDir() + "millrace-io-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    file_ = disk_.open(join_path(root_, "f"), OpenMode::kCreate).value();
  }
  ~DiskIoContract() override { std::filesystem::remove_all(root_); }

  void SetUp() override {
    auto chosen = make_disk_io({.preference = GetParam(), .depth = 64}, pool_);
    if (!chosen) GTEST_SKIP() << chosen.error().to_string();
    io_ = std::move(chosen->engine);
  }
  Result<std::size_t> read(std::uint64_t offset, MutableByteView into) {
    Waiter<std::size_t> waiter;
    io_->read(kContext, file_, offset, into, waiter.completion());
    return waiter.wait();
  }
  Result<std::size_t> write(std::uint64_t offset, std::string_view text) {
    Waiter<std::size_t> waiter;
    io_->write(kContext, file_, offset, as_bytes(text), waiter.completion());
    return waiter.wait();
  }

  std::string root_;
  PosixDisk disk_;
  std::shared_ptr<DiskFile> file_;
  ThreadPool pool_{{.name = "disk", .threads = 4, .queued_tasks_max = 1024}};
  std::unique_ptr<DiskIo> io_;
};

TEST_P(DiskIoContract, ReadsBackWhatWasWritten) {
  EXPECT_EQ(write(3, "hello").value(), 5u);
  std::string text(10, '?');
  EXPECT_EQ(read(0, std::as_writable_bytes(std::span(text))).value(), 8u);
  EXPECT_EQ(text, std::string("\0\0\0hello??", 10));
  EXPECT_EQ(read(8, std::as_writable_bytes(std::span(text))).value(), 0u);
  EXPECT_EQ(read(0, {}).value(), 0u);
  EXPECT_EQ(write(0, "").value(), 0u);
  EXPECT_EQ(io_->in_flight(), 0u);
}

TEST_P(DiskIoContract, FailuresNameTheFile) {
  file_ = disk_.open(join_path(root_, "f"), OpenMode::kRead).value();
  const Status status = write(0, "x").error();
  EXPECT_EQ(status.code(), StatusCode::kIoError);
  EXPECT_THAT(status.message(), ::testing::HasSubstr(file_->path()));
  EXPECT_EQ(write(UINT64_MAX - 1, "xyz").error().code(), StatusCode::kInvalidArgument);
}

TEST_P(DiskIoContract, TheFileLivesUntilTheAnswer) {
  ASSERT_TRUE(write(0, std::string(1 << 20, 'x')).has_value());
  std::string text(1 << 20, '?');
  Waiter<std::size_t> waiter;
  std::weak_ptr<DiskFile> watch = file_;
  io_->read(kContext, std::move(file_), 0, std::as_writable_bytes(std::span(text)),
            waiter.completion());
  EXPECT_EQ(waiter.wait().value(), text.size());
  EXPECT_EQ(text, std::string(1 << 20, 'x'));
  EXPECT_TRUE(watch.expired());
}

TEST_P(DiskIoContract, AnEndedRequestDoesNotTouchTheDisk) {
  const RequestContext context = RequestContext::background();
  context.cancellation().request();
  Waiter<std::size_t> waiter;
  io_->write(context, file_, 0, as_bytes("x"), waiter.completion());
  EXPECT_EQ(waiter.wait().error().code(), StatusCode::kCancelled);
  EXPECT_EQ(file_->size().value(), 0u);
}

TEST_P(DiskIoContract, ManyAtOnceFromManyThreads) {
  constexpr std::size_t kBlock = 8192;
  constexpr int kBlocks = 256;
  std::atomic<int> refused = 0;
  const auto pattern = [](int i) { return std::string(kBlock, static_cast<char>('a' + i % 26)); };
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = t; i < kBlocks; i += 4) {
        const std::string block = pattern(i);
        // Depth 64 and four synchronous writers: nothing is refused here.
        if (!write(i * kBlock, block)) ++refused;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(refused, 0);

  std::vector<std::string> texts(kBlocks, std::string(kBlock, '?'));
  std::vector<Waiter<std::size_t>> waiters(kBlocks);
  for (int i = 0; i < kBlocks; ++i) {
    io_->read(kContext, file_, i * kBlock, std::as_writable_bytes(std::span(texts[i])),
              waiters[i].completion());
  }
  int answered = 0;
  for (int i = 0; i < kBlocks; ++i) {
    const auto count = waiters[i].wait();
    if (count) {
      ++answered;
      EXPECT_EQ(texts[i], pattern(i));
    } else {
      EXPECT_EQ(count.error().code(), StatusCode::kResourceExhausted);
    }
  }
  EXPECT_GE(answered, 64);
}

TEST_P(DiskIoContract, RefusesBeyondItsDepth) {
  // Answers that do not return hold all of the engine's threads; what comes after fills the depth.
  ASSERT_TRUE(write(0, "x").has_value());
  const int workers = GetParam() == DiskIoPreference::kThreads ? 4 : 1;
  // Shared with the answers: one may still be inside a latch when the test is over.
  const auto held = std::make_shared<std::latch>(workers);
  const auto released = std::make_shared<std::latch>(1);
  std::vector<std::byte> bytes(workers + 65);
  for (int i = 0; i < workers; ++i) {
    io_->read(kContext, file_, 0, {&bytes[i], 1},
              Completion<std::size_t>(inline_executor(), [held, released](Result<std::size_t>) {
                held->count_down();
                released->wait();
              }));
  }
  held->wait();
  std::vector<Waiter<std::size_t>> waiters(65);
  for (int i = 0; i < 65; ++i) {
    EXPECT_EQ(io_->in_flight(), static_cast<std::size_t>(i));
    io_->read(kContext, file_, 0, {&bytes[workers + i], 1}, waiters[i].completion());
  }
  EXPECT_EQ(waiters[64].wait().error().code(), StatusCode::kResourceExhausted);
  released->count_down();
  for (int i = 0; i < 64; ++i)
    EXPECT_EQ(waiters[i].wait().value(), 1u);
}

TEST_P(DiskIoContract, DestructionWaitsForWhatIsInFlight) {
  std::vector<std::string> texts(32, std::string(1 << 16, 'x'));
  std::atomic<int> answers = 0;
  for (int i = 0; i < 32; ++i) {
    io_->write(kContext, file_, i << 16, as_bytes(texts[i]),
               Completion<std::size_t>(inline_executor(),
                                       [&](Result<std::size_t> r) { answers += r.has_value(); }));
  }
  io_.reset();
  pool_.shutdown();
  EXPECT_EQ(answers, 32);
  EXPECT_EQ(file_->size().value(), 32u << 16);
}

INSTANTIATE_TEST_SUITE_P(Engines, DiskIoContract,
                         ::testing::Values(DiskIoPreference::kThreads, DiskIoPreference::kUring),
                         [](const auto& test) {
                           return test.param == DiskIoPreference::kThreads ? "Threads" : "Uring";
                         });

TEST(ThreadedDiskIo, DepthIsExact) {
  ManualExecutor executor;
  MemoryDisk disk;
  std::shared_ptr<DiskFile> file = disk.open("/f", OpenMode::kCreate).value();
  ThreadedDiskIo io(executor, 2);
  std::vector<Waiter<std::size_t>> waiters(3);
  for (auto& waiter : waiters) {
    io.write(kContext, file, 0, as_bytes("x"), waiter.completion());
  }
  EXPECT_EQ(waiters[2].wait().error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(io.in_flight(), 2u);
  executor.run_all();
  EXPECT_EQ(waiters[0].wait().value(), 1u);
  EXPECT_EQ(waiters[1].wait().value(), 1u);
  EXPECT_EQ(io.in_flight(), 0u);
}

TEST(ThreadedDiskIo, AFullExecutorRefuses) {
  ManualExecutor executor(0, 0);
  MemoryDisk disk;
  ThreadedDiskIo io(executor, 2);
  Waiter<std::size_t> waiter;
  io.write(kContext, disk.open("/f", OpenMode::kCreate).value(), 0, as_bytes("x"),
           waiter.completion());
  EXPECT_EQ(waiter.wait().error().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(io.in_flight(), 0u);
}

TEST(MakeDiskIo, SaysWhatItChose) {
  ManualExecutor executor;
  const auto threads = make_disk_io({.preference = DiskIoPreference::kThreads}, executor).value();
  EXPECT_EQ(threads.engine->name(), "threads");
  EXPECT_EQ(threads.choice, "threads, as configured");
  const auto any = make_disk_io({.preference = DiskIoPreference::kAny}, executor).value();
  EXPECT_TRUE(any.choice.starts_with(any.engine->name())) << any.choice;
  if (any.engine->name() == "threads") {
    EXPECT_THAT(any.choice, ::testing::HasSubstr("because"));
  }
}

#if MILLRACE_WITH_URING
TEST(UringDiskIo, NeedsFilesOfTheKernel) {
  auto io = UringDiskIo::create(8);
  if (!io) GTEST_SKIP() << io.error().to_string();
  MemoryDisk disk;
  Waiter<std::size_t> waiter;
  (*io)->write(kContext, disk.open("/f", OpenMode::kCreate).value(), 0, as_bytes("x"),
               waiter.completion());
  EXPECT_EQ(waiter.wait().error().code(), StatusCode::kUnsupported);
  EXPECT_EQ(UringDiskIo::create(0).error().code(), StatusCode::kInvalidArgument);
}
#endif

}  // namespace
}  // namespace millrace
