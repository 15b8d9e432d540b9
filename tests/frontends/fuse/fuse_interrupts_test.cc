// Signals for those who wait for an answer, on a real mount.
#include "frontends/fuse/fuse_interrupts.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontends/fuse/hanging_readers.h"

namespace millrace {
namespace {

TEST(FuseInterrupts, AThreadDiesByAKillOrByACoreThatNothingPrevents) {
  const auto status = [](std::string_view own, std::string_view shared, std::string_view blocked,
                         std::string_view ignored, std::string_view caught) {
    return fmt::format(
        "Name:\tcat\nSigQ:\t0/1\nSigPnd:\t{}\nShdPnd:\t{}\nSigBlk:\t{}\nSigIgn:\t{}\n"
        "SigCgt:\t{}\n",
        own, shared, blocked, ignored, caught);
  };
  EXPECT_FALSE(is_about_to_die(status("0", "0", "0", "0", "0")));
  EXPECT_TRUE(is_about_to_die(status("0000000000000100", "0", "0", "0", "0")));
  EXPECT_TRUE(is_about_to_die(status("0", "0000000000000100", "ffffffffffffffff", "0", "0")));
  EXPECT_FALSE(is_about_to_die(status("0", "0000000000002000", "0", "0", "0"))) << "SIGALRM";
  EXPECT_TRUE(is_about_to_die(status("0", "0000000000000004", "0", "0", "0"))) << "SIGQUIT";
  EXPECT_FALSE(is_about_to_die(status("0", "4", "4", "0", "0")));
  EXPECT_FALSE(is_about_to_die(status("0", "4", "0", "4", "0")));
  EXPECT_FALSE(is_about_to_die(status("0", "4", "0", "0", "4")));
  EXPECT_FALSE(is_about_to_die(""));
}

// While it lives, no thread can be started: none has room for such a stack.
class WithoutThreads {
 public:
  WithoutThreads() {
    ::pthread_getattr_default_np(&before_);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 47);
    EXPECT_EQ(::pthread_setattr_default_np(&attributes), 0);
    ::pthread_attr_destroy(&attributes);
    EXPECT_THROW(std::thread([] {}), std::system_error);
  }
  ~WithoutThreads() {
    EXPECT_EQ(::pthread_setattr_default_np(&before_), 0);
    ::pthread_attr_destroy(&before_);
  }
  WithoutThreads(const WithoutThreads&) = delete;
  WithoutThreads& operator=(const WithoutThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

class FuseInterruptsTest : public HangingReaders {};

TEST_F(FuseInterruptsTest, S23AReaderThatIsKilledLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(mount_version());
  hang();
  const pid_t reader = start_direct_reader();
  ASSERT_NO_FATAL_FAILURE(
      wait_for([this] { return world.requests(FuseMetricOperation::kRead) > 0; }));
  ::kill(reader, SIGKILL);
  EXPECT_EQ(ending_of(reader), SIGKILL);
  EXPECT_TRUE(becomes([this] { return world.connection().calls.size() == 0; }));
  expect_others_are_served("");
}

TEST_F(FuseInterruptsTest, S23ReadersCanBeKilledAlsoWhenMoreWaitThanThereAreThreads) {
  ASSERT_NO_FATAL_FAILURE(mount_all());
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  signal_all(SIGKILL);
  expect_all_end();
  expect_others_are_served("datasets/a/v1/");
}

TEST_F(FuseInterruptsTest, S23ReadersCanBeKilledAlsoAfterASignalThatTheyHandle) {
  ASSERT_NO_FATAL_FAILURE(mount_all());
  ASSERT_NO_FATAL_FAILURE(start_readers(kMoreThanThreads));
  // Again and again, since some may still be on their way: their first look-ups are of "datasets".
  ASSERT_NO_FATAL_FAILURE(wait_for([this] {
    signal_all(kHandled);
    return world.connection().calls.signalled().size() == readers.size();
  }));
  signal_all(SIGKILL);
  expect_all_end();
}

TEST_F(FuseInterruptsTest, S23ReadersCanBeKilledAlsoWhenNoThreadCanBeStarted) {
  ASSERT_NO_FATAL_FAILURE(mount_all());
  // All that reading needs runs by then, and of the session two threads at least.
  expect_others_are_served("datasets/a/v1/");
  const WithoutThreads none;
  ASSERT_NO_FATAL_FAILURE(start_readers(8));
  // Nobody can look at them again, so what a signal came for is called off at once.
  const pid_t first = *readers.begin();
  EXPECT_TRUE(becomes([&] {
    ::kill(first, kHandled);
    return ::waitpid(first, nullptr, WNOHANG) == first;
  }));
  readers.erase(first);
  signal_all(SIGKILL);
  expect_all_end();
  expect_others_are_served("datasets/a/v1/");
}

TEST_F(FuseInterruptsTest, S23ReadersEndBySignalsThatTheyDoNotHandle) {
  ASSERT_NO_FATAL_FAILURE(mount_version());
  hang();
  for (const int number : {SIGTERM, SIGINT, SIGALRM, SIGQUIT, SIGABRT}) {
    const std::uint64_t reads = world.requests(FuseMetricOperation::kRead);
    const pid_t reader = start_direct_reader();
    ASSERT_NO_FATAL_FAILURE(
        wait_for([&] { return world.requests(FuseMetricOperation::kRead) > reads; }));
    ::kill(reader, number);
    EXPECT_EQ(ending_of(reader), number);
  }
}

TEST_F(FuseInterruptsTest, S23ASignalThatIsHandledFailsNoCall) {
  ASSERT_NO_FATAL_FAILURE(mount_version());
  std::promise<void> answers;
  world.faulty->set_plan(
      [answered = answers.get_future().share()](const FaultableCall& call) -> std::optional<Fault> {
        if (!call.key.starts_with(".millrace/")) answered.wait();
        return std::nullopt;
      });
  const pid_t reader = start_direct_reader();
  EXPECT_TRUE(becomes([this] { return world.requests(FuseMetricOperation::kRead) > 0; }));
  ::kill(reader, kHandled);
  EXPECT_TRUE(becomes([this] { return !world.connection().calls.signalled().empty(); }));
  answers.set_value();
  EXPECT_EQ(ending_of(reader), 0);
}

}  // namespace
}  // namespace millrace
