// kill -9 of the daemon, again and again, under readers that check every byte.
#include <signal.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"
#include "tests/servers/child_process.h"
#include "tests/servers/torture.h"

namespace millrace::cli {
namespace {

using millrace::testing::ChildProcess;

constexpr int kReaders = 4;

class MountTorture : public MountTest {
 protected:
  // Reads everything and compares it, until the file `end` is there.
  std::unique_ptr<ChildProcess> reader(int number) {
    return std::make_unique<ChildProcess>(
        std::vector<std::string>{
            "/bin/bash", "-c",
            fmt::format(
                "cd {}/mnt; until test -e ../end; do sha256sum --quiet -c ../sums || exit 1;"
                " cmp ../tree/large.bin large.bin || exit 2; ls -lR > /dev/null || exit 3;"
                " done",
                directory_)},
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

}  // namespace
}  // namespace millrace::cli
