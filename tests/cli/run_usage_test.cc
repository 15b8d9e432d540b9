// What a mount books under the runs of those who read.
#include <unistd.h>

#include <gmock/gmock.h>

#include "tests/cli/mount_world.h"

namespace millrace::cli {
namespace {

class RunUsage : public MountTest {
 protected:
  // Read bytes by run, or by principal, as the daemon has them; or another figure.
  std::map<std::string, std::uint64_t> usage_by_run(const std::string& figure = "read_bytes",
                                                    const std::string& by = "run") {
    std::map<std::string, std::uint64_t> usage;
    const Outcome listed = millrace({"usage", "--by", by, "--json"});
    EXPECT_EQ(listed.exit_code, 0) << listed.err;
    for (std::size_t begin = 0; begin < listed.out.size();) {
      const std::size_t end = std::min(listed.out.find('\n', begin), listed.out.size());
      const auto row = nlohmann::json::parse(listed.out.substr(begin, end - begin));
      usage[row.value(by, "")] = row.value(figure, std::uint64_t{0});
      begin = end + 1;
    }
    return usage;
  }
};

TEST_F(RunUsage, NothingThatAShortProcessReadsIsBookedUnderNoRun) {
  succeed("millrace mount a@v1 mnt --opening stateless");
  // Each reads a file of its own, so that no page is in memory yet, and ends at once.
  succeed("for n in $(seq 20); do MILLRACE_RUN=w$n cat mnt/d/$n.jpg > /dev/null; done");
  const auto usage = usage_by_run();
  for (int n = 1; n <= 20; ++n) {
    const std::string run = "w" + std::to_string(n);
    ASSERT_TRUE(usage.contains(run)) << run;
    EXPECT_EQ(usage.at(run), n * 700U) << run;
  }
  EXPECT_FALSE(usage.contains("-"));
  EXPECT_FALSE(usage.contains(""));
}

TEST_F(RunUsage, WhoReadsIsBookedUnderHisNumber) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  succeed(
      "chmod 755 $DIR; millrace mount a@v1 mnt --opening stateless;"
      "for n in 1 2 3; do setpriv --reuid 6550$n --clear-groups cat mnt/d/$n.jpg > /dev/null; "
      "done");
  const auto usage = usage_by_run("read_bytes", "principal");
  for (int n = 1; n <= 3; ++n) {
    const std::string principal = "uid:6550" + std::to_string(n);
    ASSERT_TRUE(usage.contains(principal)) << principal;
    EXPECT_EQ(usage.at(principal), n * 700U) << principal;
  }
}

// Also without the variable, as jobs of a scheduler are.
TEST_F(RunUsage, WhoHasNoRunButAGroupOfASchedulerIsBookedUnderThat) {
  const std::string job = "/job_" + std::to_string(::getpid());
  const Outcome made = bash("group=$(findmnt -fnro TARGET -t cgroup2)" + job +
                            "; mkdir -p $group/step_0 && echo -n $group");
  if (made.exit_code != 0) {
    GTEST_SKIP() << "this machine lets nobody have control groups of his own";
  }
  const std::string& group = made.out;
  succeed("millrace mount a@v1 mnt --opening stateless; (echo $BASHPID > " + group +
          "/step_0/cgroup.procs; cat mnt/d/9.jpg > /dev/null)");
  EXPECT_EQ(bash("rmdir " + group + "/step_0 " + group).exit_code, 0);
  const auto usage = usage_by_run();
  ASSERT_TRUE(usage.contains("cgroup:" + job));
  EXPECT_EQ(usage.at("cgroup:" + job), 9 * 700U);
}

TEST_F(RunUsage, AFileThatIsHandedToTheKernelIsBookedForEachWhoOpensIt) {
  succeed("millrace mount a@v1 mnt --opening passthrough; cat mnt/large.bin > /dev/null");
  // Somebody has it open all the time.
  succeed(
      "exec 7< mnt/large.bin; for n in 1 2 3; do MILLRACE_RUN=h$n cat mnt/large.bin > /dev/null;"
      "done");
  const auto files = usage_by_run("handed_out_files");
  const auto read = usage_by_run();
  for (const std::string run : {"h1", "h2", "h3"}) {
    ASSERT_TRUE(files.contains(run)) << run;
    // Where the kernel takes no files, reads are seen one by one, or come out of its memory.
    EXPECT_TRUE(files.at(run) == 1 || read.at(run) > 0) << run;
  }
}

TEST_F(RunUsage, TheRecordOfARunHasWhatItsProcessesRead) {
  succeed("millrace mount a@v1 mnt --opening stateless");
  succeed(
      "millrace run --name cats --use a@v1 -- sh -c 'cat mnt/d/50.jpg mnt/d/60.jpg' > /dev/null");
  const Outcome runs = millrace({"run", "ls", "--json"});
  const std::string id = nlohmann::json::parse(runs.out.substr(0, runs.out.find('\n')))["run"];
  const auto record = millrace({"run", "show", id, "--json"}).json();
  ASSERT_EQ(record["observed"].size(), 1U) << record.dump();
  EXPECT_EQ(record["observed"][0]["version"], "a@v1");
  EXPECT_EQ(record["observed"][0]["read_bytes"], (50 + 60) * 700);
  EXPECT_GT(record["observed"][0]["fetched_bytes"], 0);
  EXPECT_GT(record["observed"][0]["fetches"], 0);
}

}  // namespace
}  // namespace millrace::cli
