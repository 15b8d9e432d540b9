// Loaders over many epochs, and killed at random moments, with their daemon.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "tests/abi/daemon_abi_world.h"
#include "tests/servers/torture.h"

namespace millrace {
namespace {

std::uint64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "VmRSS:" && status >> kib) return kib;
  }
  return 0;
}

std::size_t open_files() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

class LoaderTorture : public DaemonAbiTest {
 protected:
  // Reads from a state on, and writes each later state to the pipe, until it is killed or the
  // second epoch has ended.
  [[noreturn]] void work(const std::string& from, int batch, int into) {
    const AbiDataset dataset = open(options());
    if (dataset == nullptr) ::_exit(4);
    AbiJson with = {{"batch", batch}, {"prefetch", 3}};
    if (!from.empty()) with["state"] = from;
    const AbiLoader loader = load(dataset, with);
    // The one before was killed behind the end of all.
    if (mr_loader_epoch(loader.get()) == 2) ::_exit(0);
    for (;;) {
      const AbiBatch taken = next(loader);
      if (!failure_text.empty()) ::_exit(2);
      const std::string record = state(loader) + '\0';
      if (::write(into, record.data(), record.size()) != static_cast<ssize_t>(record.size()))
        ::_exit(3);
      if (taken == nullptr && mr_loader_epoch(loader.get()) == 1) ::_exit(0);
    }
  }
};

// Everything that was written until the other side went; the last whole record of it.
std::string last_record(int from, std::string before) {
  std::string all;
  std::array<char, 65536> some{};
  for (ssize_t got = 0; (got = ::read(from, some.data(), some.size())) > 0;)
    all.append(some.data(), static_cast<std::size_t>(got));
  const std::size_t end = all.rfind('\0');
  if (end == std::string::npos) return before;
  const std::size_t begin = end == 0 ? std::string::npos : all.rfind('\0', end - 1);
  return all.substr(begin == std::string::npos ? 0 : begin + 1,
                    end - (begin == std::string::npos ? 0 : begin + 1));
}

TEST_F(LoaderTorture, GoesOnAfterKillsAsIfThereWereNone) {
  const std::uint64_t seed = torture_seed();
  SCOPED_TRACE(fmt::format("seed {}", seed));
  std::mt19937_64 random(seed);
  // Two epochs without a kill.
  std::string expected;
  {
    const AbiDataset dataset = open(options());
    ASSERT_NE(dataset, nullptr);
    const AbiLoader loader = load(dataset, {{"batch", 5}});
    keys_of_epoch(loader);
    keys_of_epoch(loader);
    expected = digest(loader);
  }
  const std::uint64_t jobs = torture_rounds(200, 4);
  std::uint64_t kills = 0;
  std::uint64_t daemon_kills = 0;
  for (std::uint64_t job = 0; job < jobs; ++job) {
    std::string at;
    for (bool ended = false; !ended;) {
      int ends[2];
      ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
      const int batch = static_cast<int>(1 + random() % 9);
      const pid_t worker = ::fork();
      if (worker == 0) {
        ::close(ends[0]);
        work(at, batch, ends[1]);
      }
      ::close(ends[1]);
      // Somewhere between its start and its end.
      pollfd entry{ends[0], POLLIN, 0};
      (void)::poll(&entry, 1, static_cast<int>(random() % 400));
      if (random() % 3 == 0 && daemon_pid() > 0) {
        ::kill(daemon_pid(), SIGKILL);
        ++daemon_kills;
      }
      if (random() % 4 != 0) ::kill(worker, SIGKILL);
      at = last_record(ends[0], at);
      ::close(ends[0]);
      int how = -1;
      ASSERT_EQ(::waitpid(worker, &how, 0), worker);
      ended = WIFEXITED(how);
      if (ended) {
        ASSERT_EQ(WEXITSTATUS(how), 0) << "job " << job;
      } else {
        ++kills;
      }
    }
    EXPECT_NE(at.find(expected), std::string::npos) << "job " << job << " delivered else: " << at;
  }
  // A few jobs may all be faster than their killer.
  if (full_torture()) {
    EXPECT_GT(kills, 0u);
  }
  report_torture(
      "loader_kills", seed,
      fmt::format(R"("jobs":{},"kills":{},"daemon_kills":{})", jobs, kills, daemon_kills));
}

TEST_F(LoaderTorture, LeaksNothingOverManyEpochs) {
  const std::uint64_t epochs = torture_rounds(1000, 60);
  for (const char* const kind : {"process", "daemon"}) {
    engine = kind;
    const AbiDataset dataset = open(options());
    ASSERT_NE(dataset, nullptr);
    std::uint64_t warm_kib = 0;
    std::size_t warm_files = 0;
    const AbiLoader loader = load(dataset, {{"batch", 16}});
    for (std::uint64_t epoch = 0; epoch < epochs; ++epoch) {
      ASSERT_EQ(keys_of_epoch(loader).size(), 120u) << failure_text;
      if (epoch == epochs / 4) {
        warm_kib = resident_kib();
        warm_files = open_files();
      }
    }
    const std::uint64_t grown_kib = resident_kib() - std::min(resident_kib(), warm_kib);
    EXPECT_LT(grown_kib, 16u * 1024) << kind;
    EXPECT_LE(open_files(), warm_files + 8) << kind;
    report_torture(fmt::format("loader_epochs_{}", kind), 0,
                   fmt::format(R"("epochs":{},"grown_kib":{})", epochs, grown_kib));
  }
}

}  // namespace
}  // namespace millrace
