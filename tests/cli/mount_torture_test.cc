// kill -9 of the daemon, again and again, under readers that check every byte; and readers of all
// kinds, killed ones among them, for as long as it takes to see a leak.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"
#include "tests/servers/child_process.h"
#include "tests/servers/torture.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;

constexpr int kReaders = 4;
// What is cached on the disk goes at every so many kills, so that fetches are met too.
constexpr int kKillsADrop = 4;
// Lets go of the pages of all files below the current directory.
constexpr std::string_view kDropPages =
    "python3 -c 'import glob, os\n"
    "for path in glob.glob(\"**\", recursive=True):\n"
    "  if os.path.isfile(path):\n"
    "    file = os.open(path, os.O_RDONLY)\n"
    "    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)\n"
    "    os.close(file)'";

class MountTorture : public MountTest {
 protected:
  // Reads everything and compares it, until the file `end` is there. Each pass begins without the
  // page cache: what the kernel has already never meets a daemon, dead or alive.
  std::unique_ptr<ChildProcess> reader(int number) {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{
            "/bin/bash", "-c",
            fmt::format("cd {}/mnt; until test -e ../end; do {} || exit 4;"
                        " sha256sum --quiet -c ../sums || exit 1;"
                        " cmp ../tree/large.bin large.bin || exit 2; ls -lR > /dev/null || exit 3;"
                        " done",
                        directory_, kDropPages)},
        millrace::testing::ChildOptions{.output_file = path(fmt::format("reader{}.log", number)),
                                        .environment = {}});
  }
  void kill_again_and_again(const std::string& opening) {
    const int kills = full_torture() ? 100 : kSanitized ? 2 : 5;
    succeed("millrace mount --opening " + opening + " a@v1 mnt");
    std::vector<std::unique_ptr<ChildProcess>> readers;
    for (int n = 0; n < kReaders; ++n)
      readers.push_back(reader(n));
    int last = 0;
    for (int n = 0; n < kills; ++n) {
      int pid = 0;
      ASSERT_TRUE(becomes([&] {
        const Outcome status = millrace({"status", "--json"});
        if (status.exit_code != 0) return false;
        pid = status.json().value("pid", 0);
        return pid > 0 && pid != last;
      })) << "after kill "
          << n;
      if (n % kKillsADrop == kKillsADrop - 1) succeed("millrace cache drop a@v1");
      ASSERT_EQ(::kill(pid, SIGKILL), 0);
      last = pid;
    }
    write("end", "");
    for (int n = 0; n < kReaders; ++n) {
      EXPECT_EQ(readers[static_cast<std::size_t>(n)]->wait(std::chrono::seconds(120)), 0)
          << read(fmt::format("reader{}.log", n));
    }
    EXPECT_TRUE(becomes([&] { return daemon_pid() > 0; }));
    succeed("(cd mnt; sha256sum --quiet -c ../sums); millrace umount mnt");
    report_torture("mount_kills_" + opening, 0,
                   fmt::format(R"("kills":{},"readers":{})", kills, kReaders));
  }
};

TEST_F(MountTorture, ReadersSeeNothingOfKillsWhenFilesAreHandedOver) {
  kill_again_and_again("passthrough");
}

TEST_F(MountTorture, ReadersSeeNothingOfKillsWhenOpensAreNotTold) {
  kill_again_and_again("stateless");
}

// What a process has now.
struct Holdings {
  long rss_kib = 0;
  long descriptors = 0;
};

Holdings holdings_of(int process) {
  Holdings holdings;
  std::ifstream status(fmt::format("/proc/{}/status", process));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) holdings.rss_kib = std::stol(line.substr(6));
  }
  holdings.descriptors =
      std::distance(std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", process)), {});
  return holdings;
}

class MountChurn : public MountTest {
 protected:
  // Readers that end well, one that is killed while it reads, one that goes before its open is
  // answered, a mount that comes and goes, and a cache that is emptied under all of them.
  void churn() {
    succeed(
        "cd mnt; (sha256sum --quiet -c ../sums) & (tar cf - . > /dev/null) &"
        "(while :; do cat large.bin d/*.jpg; done > /dev/null) & endless=$!;"
        "timeout -s KILL 0.05 cat large.bin > /dev/null || true;"
        "cd ..; mkdir -p mnt2; millrace mount a@v1 mnt2; cmp tree/large.bin mnt2/large.bin;"
        "millrace umount mnt2; millrace cache drop a@v1 > /dev/null;"
        "kill -9 $endless; wait $endless || true; wait");
  }
};

TEST_F(MountChurn, LeavesNothingBehind) {
  // The first half of them is there to take what it needs, and the rest to take no more.
  constexpr std::size_t kSpans = 8;
  const std::chrono::milliseconds span =
      (full_torture() ? std::chrono::minutes(10) : std::chrono::seconds(4)) / kSpans;
  const long more_rss_kib_max = (full_torture() ? 16 : 48) * 1024;
  for (const std::string opening : {"passthrough", "stateless"}) {
    succeed("millrace mount --opening " + opening + " a@v1 mnt");
    const int process = daemon_pid();
    int rounds = 0;
    std::vector<Holdings> held;
    while (held.size() < kSpans && !HasFailure()) {
      const auto end = std::chrono::steady_clock::now() + span;
      do {
        churn();
        ++rounds;
      } while (std::chrono::steady_clock::now() < end && !HasFailure());
      held.push_back(holdings_of(process));
    }
    ASSERT_EQ(held.size(), kSpans);
    const Holdings& before = held[kSpans / 2 - 1];
    EXPECT_TRUE(becomes([&] { return holdings_of(process).descriptors <= before.descriptors + 8; }))
        << before.descriptors << " open files became " << holdings_of(process).descriptors;
    std::vector<long> rss_kib;
    std::ranges::transform(held, std::back_inserter(rss_kib), &Holdings::rss_kib);
    if (!kSanitized) {
      EXPECT_LE(rss_kib.back(), before.rss_kib + more_rss_kib_max) << fmt::format("{}", rss_kib);
    }
    EXPECT_EQ(daemon_pid(), process);
    report_torture("mount_churn_" + opening, 0,
                   fmt::format(R"("rounds":{},"rss_kib":{},"descriptors":[{},{}])", rounds, rss_kib,
                               before.descriptors, holdings_of(process).descriptors));
    succeed("millrace umount mnt");
  }
}

}  // namespace
}  // namespace millrace::cli
