// What is asked before a training run: simulate, and bench loader against a real daemon.
#include <gmock/gmock.h>

#include "tests/cli/millrace_process.h"

namespace millrace::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// 60 files of 100 bytes in three directories, published as pets@v1.
class TrainingCommands : public MillraceTest {
 protected:
  void SetUp() override {
    MillraceTest::SetUp();
    for (int n = 0; n < 60; ++n) {
      std::string content = std::to_string(n);
      content.resize(100, '.');
      write("tree/c" + std::to_string(n % 3) + "/" + std::to_string(100 + n) + ".txt", content);
    }
    const Outcome published = millrace({"publish", path("tree"), "pets@v1"});
    ASSERT_EQ(published.exit_code, 0) << published.err;
  }
  void TearDown() override {
    if (!directory_.empty()) millrace({"stop"});
    MillraceTest::TearDown();
  }
  // Flags behind "simulate", with documents.
  nlohmann::json simulated(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"simulate", "--json"});
    const Outcome outcome = millrace(flags);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.json();
  }
  // The complaint of a command that is refused with the exit code of wrong usage.
  std::string refusal(const std::vector<std::string>& command) {
    const Outcome outcome = millrace(command);
    EXPECT_EQ(outcome.exit_code, 2) << outcome.out << outcome.err;
    EXPECT_EQ(outcome.out, "");
    // Before it may stand that a daemon is started.
    const std::vector<std::string> lines = lines_of(outcome.err);
    return lines.empty() ? "" : lines.back();
  }
};

TEST_F(TrainingCommands, SimulateTellsPeople) {
  const Outcome outcome =
      millrace({"simulate", "pets@v1", "--nodes", "2", "--ranks", "2", "--batch", "4"});
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  const std::vector<std::string> lines = lines_of(outcome.out);
  ASSERT_EQ(lines.size(), 8U) << outcome.out;
  EXPECT_EQ(lines[0], "version:        pets@v1, read as files");
  EXPECT_EQ(lines[1], "epoch:          60 samples, 5.86 KiB, 4 steps on every rank");
  EXPECT_EQ(lines[2], "blocks in 256:  1.0, 1.000 of a full shuffle's 1.0");
  EXPECT_EQ(lines[3], "classes in 256: 3.0, 1.000 of a full shuffle's 3.0");
  EXPECT_THAT(lines[4], StartsWith("entropy (bits): "));
  EXPECT_THAT(lines[5], AllOf(StartsWith("fetched:        "), HasSubstr(" of what is needed")));
  EXPECT_THAT(lines[6], HasSubstr(" on each node, to fetch nothing twice"));
  EXPECT_THAT(lines[7], HasSubstr(" on each node, about 0.04 s"));
}

TEST_F(TrainingCommands, SimulateTellsPrograms) {
  const nlohmann::json told =
      simulated({"pets@v1", "--ranks", "2", "--batch", "4", "--rate", "1KiB", "--latency", "1s"});
  EXPECT_EQ(told["version"], "pets@v1");
  EXPECT_EQ(told["reader"], "files");
  EXPECT_EQ(told["samples"], 60);
  EXPECT_EQ(told["bytes"], 6000);
  EXPECT_EQ(told["steps"], 8);
  EXPECT_EQ(told["empty_batches"], 0);
  EXPECT_EQ(told["positions"], 60);
  for (const auto* shuffle : {"quality", "full_shuffle"}) {
    EXPECT_EQ(told[shuffle]["blocks_in_batch"], 1.0);
    EXPECT_EQ(told[shuffle]["classes_in_batch"], 3.0);
    EXPECT_GE(told[shuffle]["entropy_bits"], 0.0);
  }
  EXPECT_GE(told["needed_bytes"], 6000);
  EXPECT_EQ(told["fetched_bytes"], told["needed_bytes"]);
  EXPECT_GT(told["cache_bytes_min"], 0);
  // An index and the samples, one after the other, and then their bytes.
  EXPECT_DOUBLE_EQ(told["first_step_seconds"].get<double>(),
                   2 + told["first_step_bytes"].get<double>() / 1024);
  EXPECT_EQ(simulated({"pets@v1", "--directory", "c1"})["samples"], 20);
  EXPECT_EQ(simulated({"pets@v1", "--order", "none"})["quality"]["classes_in_batch"], 3.0);
  // A seed may be any number that there is.
  EXPECT_EQ(simulated({"pets@v1", "--seed", "18446744073709551615"})["samples"], 60);
}

TEST_F(TrainingCommands, SimulateTakesWhatIsNotRegistered) {
  const nlohmann::json version = simulated({"pets@v1", "--batch", "4"});
  for (const std::string& place : {path("tree"), std::string("./tree"), "file://" + path("tree")}) {
    nlohmann::json told = simulated({place, "--batch", "4"});
    EXPECT_EQ(told["version"], place);
    for (const auto* field : {"reader", "samples", "bytes", "steps", "positions"})
      EXPECT_EQ(told[field], version[field]) << field << " of " << place;
    EXPECT_EQ(told["quality"]["classes_in_batch"], 3.0);
  }
  // Nothing of the listing stays behind.
  EXPECT_EQ(bash("find $HOME -name '*.manifest'").out, "");
  const Outcome absent = millrace({"simulate", path("absent")});
  EXPECT_EQ(absent.exit_code, 3) << absent.err;
}

// A directory cannot have an index of its tar files, nor need a version.
TEST_F(TrainingCommands, SimulateCountsTarFilesWithoutAnIndex) {
  ASSERT_EQ(
      bash("mkdir shards; for n in 1 2 3; do tar -C tree -cf shards/$n.tar c$((n - 1)); done; "
           "millrace publish shards tars@v1")
          .exit_code,
      0);
  for (const std::string& name : {path("shards"), std::string("tars@v1")}) {
    const nlohmann::json told = simulated({name});
    EXPECT_EQ(told["reader"], "webdataset") << name;
    EXPECT_EQ(told["samples"], 60) << name;
  }
}

TEST_F(TrainingCommands, SimulateRefusesWhatCannotBe) {
  EXPECT_THAT(refusal({"simulate"}), HasSubstr("needs REF"));
  EXPECT_THAT(refusal({"simulate", "pets"}), HasSubstr("'pets'"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--rate", "0"}), HasSubstr("--rate is 0"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--rate", "fast"}), HasSubstr("fast"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--latency", "-1s"}), HasSubstr("-1s"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--order", "py1e"}), HasSubstr("py1e"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--reader", "parquet"}), HasSubstr("parquet"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--nodes", "0"}), HasSubstr("--nodes"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--batch", "0"}), HasSubstr("batch"));
  EXPECT_THAT(refusal({"simulate", "pets@v1", "--ranks", "61"}), HasSubstr("use fewer ranks"));
  for (const std::string flag : {"--seed", "--epoch", "--batch", "--replication"}) {
    EXPECT_THAT(refusal({"simulate", "pets@v1", flag, "-1"}),
                HasSubstr(flag + ": '-1' is no whole number from 0 on"));
  }
  EXPECT_EQ(millrace({"simulate", "pets@v2"}).exit_code, 3);
}

TEST_F(TrainingCommands, BenchLoaderSaysWhetherAcceleratorsAreFed) {
  const std::vector<std::string> flags = {"--workload", "cosmoflow", "--batch",        "5",
                                          "--steps",    "9",         "--accelerators", "2"};
  const auto bench = [&](const std::string& name, bool json) {
    std::vector<std::string> command = {"bench", "loader", name};
    command.insert(command.end(), flags.begin(), flags.end());
    if (json) command.emplace_back("--json");
    return millrace(command);
  };
  // A version, and a directory by where this process is and the daemon is not.
  for (const std::string name : {"pets@v1", "./tree"}) {
    const Outcome outcome = bench(name, true);
    ASSERT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 1) << outcome.err;
    const nlohmann::json told = outcome.json();
    EXPECT_EQ(told["workload"], "cosmoflow");
    EXPECT_EQ(told["accelerator"], "h100");
    EXPECT_EQ(told["accelerators"], 2);
    EXPECT_EQ(told["steps"], 9);
    EXPECT_EQ(told["samples"], 2 * 9 * 5);
    EXPECT_GE(told["bytes"], 2 * 9 * 5 * 100);
    // Computing takes 3.5 ms a step.
    EXPECT_GE(told["seconds"], 9 * 0.0035);
    EXPECT_GT(told["first_batch_seconds"], 0.0);
    EXPECT_GT(told["utilisation"], 0.0);
    EXPECT_LE(told["utilisation"], 1.0);
    EXPECT_EQ(told["utilisation_min"], 0.7);
    // Whether they are fed depends on the machine; that all say the same does not.
    EXPECT_EQ(told["fed"], told["utilisation"] >= 0.7);
    EXPECT_EQ(outcome.exit_code, told["fed"] ? 0 : 1);
  }
  const Outcome shown = bench("pets@v1", false);
  const std::vector<std::string> lines = lines_of(shown.out);
  ASSERT_EQ(lines.size(), 2U) << shown.out << shown.err;
  EXPECT_THAT(lines[0], StartsWith("cosmoflow on 2 emulated h100: "));
  EXPECT_THAT(lines[0], HasSubstr(" % of the time computing (70 % are needed): they "));
  EXPECT_THAT(lines[1], StartsWith("9 steps each in "));
  EXPECT_THAT(lines[1], HasSubstr("; first batch after "));
}

TEST_F(TrainingCommands, BenchLoaderRefusesWhatCannotBe) {
  EXPECT_THAT(refusal({"bench", "loader"}), HasSubstr("needs REF"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--workload", "bert"}),
              HasSubstr("there is no workload 'bert': unet3d, resnet50, cosmoflow"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--accelerator", "tpu"}), HasSubstr("tpu"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--accelerators", "0"}),
              HasSubstr("--accelerators"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--steps", "0"}), HasSubstr("--steps"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--batch", "-1"}),
              HasSubstr("--batch: '-1' is no whole number from 0 on"));
  EXPECT_THAT(refusal({"bench", "loader", "pets@v1", "--accelerators", "61"}),
              HasSubstr("use fewer ranks"));
  EXPECT_EQ(millrace({"bench", "loader", "pets@v2"}).exit_code, 3);
}

}  // namespace
}  // namespace millrace::cli
