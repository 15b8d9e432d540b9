// Signals for those who wait for an answer, on a real mount.
#include "frontends/fuse/fuse_interrupts.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/frontends/fuse/fuse_world.h"

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

// Readers whose calls wait for a store that hangs.
class FuseInterruptsTest : public ::testing::Test {
 protected:
  static constexpr int kHandled = SIGUSR1;
  static constexpr std::size_t kMoreThanThreads = 80;

  void SetUp() override {
    world.tree.write("whole.bin", publish_bytes(3 * kMiB, 5));
    world.tree.write("other.bin", publish_bytes(300 * kKiB, 6));
    ASSERT_TRUE(world.publish("a@v1"));
  }
  void TearDown() override {
    for (const pid_t reader : readers) {
      ::kill(reader, SIGKILL);
      ::waitpid(reader, nullptr, 0);
    }
  }
  // Content alone.
  void hang() {
    world.faulty->set_plan([](const FaultableCall& call) -> std::optional<Fault> {
      if (call.key.starts_with(".millrace/")) return std::nullopt;
      return Fault{.kind = Fault::Kind::kHang};
    });
  }
  // One that exits with 0 when `attempt` has worked, and has a handler for one signal.
  pid_t start_reader(const std::function<bool()>& attempt) {
    const pid_t reader = ::fork();
    if (reader == 0) {
      const rlimit no_core{};
      ::setrlimit(RLIMIT_CORE, &no_core);
      struct sigaction action{};
      action.sa_handler = [](int) {};
      ::sigaction(kHandled, &action, nullptr);
      ::_exit(attempt() ? 0 : 1);
    }
    readers.insert(reader);
    return reader;
  }
  // Past the page cache, so that this one request is all that there is.
  pid_t start_direct_reader() {
    return start_reader([path = world.mounted("whole.bin")] {
      alignas(4096) static char page[4096];
      const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
      return ::read(fd, page, sizeof(page)) > 0;
    });
  }
  void mount_all() {
    ASSERT_NO_FATAL_FAILURE(world.mount("/", FuseOpening::kPassthrough));
    ASSERT_EQ(::access(world.mounted("datasets").c_str(), F_OK), 0);
  }
  // Each waits for a list of the registry.
  void start_readers(std::size_t count) {
    world.faulty->set_plan([](const FaultableCall&) -> std::optional<Fault> {
      return Fault{.kind = Fault::Kind::kHang};
    });
    const std::uint64_t before = world.requests(FuseMetricOperation::kLookup);
    for (std::size_t n = 0; n < count; ++n) {
      start_reader([path = world.mounted("datasets/cold" + std::to_string(n))] {
        return ::access(path.c_str(), F_OK) == 0;
      });
    }
    wait_for([&] { return world.requests(FuseMetricOperation::kLookup) >= before + count; });
  }
  void signal_all(int number) {
    for (const pid_t reader : readers)
      ::kill(reader, number);
  }
  // How a reader ended; nothing when it does not.
  std::optional<int> ending_of(pid_t reader) {
    int status = 0;
    if (!becomes([&] { return ::waitpid(reader, &status, WNOHANG) == reader; })) {
      return std::nullopt;
    }
    readers.erase(reader);
    return status;
  }
  void expect_all_end() {
    EXPECT_TRUE(becomes([this] {
      std::erase_if(readers, [](pid_t reader) { return ::waitpid(reader, nullptr, WNOHANG) != 0; });
      return readers.empty();
    })) << readers.size()
        << " cannot be killed";
  }
  // Before calls end by themselves, also where 80 processes are slow to start.
  static bool becomes(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + FuseWorld::kCallTimeout / 3;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  static void wait_for(const std::function<bool()>& condition) { ASSERT_TRUE(becomes(condition)); }

  void mount_version() {
    ASSERT_NO_FATAL_FAILURE(world.mount("datasets/a/v1", FuseOpening::kPassthrough));
  }
  // Not by who had to wait.
  void expect_others_are_served(const std::string& version) {
    world.faulty->set_plan(no_faults());
    EXPECT_TRUE(FuseWorld::read_file_by(world.mounted(version + "other.bin"), kMiB) ==
                FuseWorld::read_file_by(world.tree.path("other.bin"), kMiB));
  }

  FuseWorld world;
  std::set<pid_t> readers;
};

TEST_F(FuseInterruptsTest, S23AReaderThatIsKilledLeavesNothingBehind) {
  ASSERT_NO_FATAL_FAILURE(mount_version());
  hang();
  const pid_t reader = start_direct_reader();
  ASSERT_NO_FATAL_FAILURE(
      wait_for([this] { return world.requests(FuseMetricOperation::kRead) > 0; }));
  ::kill(reader, SIGKILL);
  EXPECT_EQ(ending_of(reader), SIGKILL);
  EXPECT_TRUE(becomes([this] { return world.connection().calls.empty(); }));
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
