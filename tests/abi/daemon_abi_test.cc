// Loaders that read through the daemon, which is started on demand, and killed.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <thread>

#include <gmock/gmock.h>

#include "tests/abi/daemon_abi_world.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TEST_F(DaemonAbiTest, StartsADaemonAndReadsThroughIt) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(info(dataset)["engine"], "daemon");
  EXPECT_EQ(info(dataset)["datasets"][0]["classes"], AbiJson({"c0", "c1", "c2"}));
  const AbiLoader loader = load(dataset, {{"batch", 16}});
  std::set<std::string> seen;
  while (const AbiBatch batch = next(loader)) {
    const std::vector<std::string> keys = texts(batch, "__key__");
    const std::vector<std::string> contents = texts(batch, "data");
    for (std::size_t n = 0; n < keys.size(); ++n) {
      EXPECT_TRUE(seen.insert(keys[n]).second);
      EXPECT_EQ(contents[n], fmt::format("content {} of class {}", std::stoi(keys[n].substr(3)),
                                         keys[n].substr(1, 1)));
    }
  }
  EXPECT_EQ(failure_text, "");
  EXPECT_THAT(seen, SizeIs(120));
  EXPECT_EQ(digest(loader), expected_digest());
}

TEST_F(DaemonAbiTest, AKilledDaemonIsStartedAgainAndNothingIsLost) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  const AbiLoader loader = load(dataset, {{"batch", 4}, {"prefetch", 2}});
  AbiBatch held;
  for (int step = 0; step < 30; ++step) {
    if (step == 7 || step == 19) kill_daemon();
    AbiBatch batch = next(loader);
    ASSERT_NE(batch, nullptr) << failure_text;
    if (step == 6) held = std::move(batch);
  }
  EXPECT_EQ(next(loader), nullptr);
  EXPECT_EQ(failure_text, "");
  EXPECT_THAT(texts(held, "__key__"), SizeIs(4)) << "a batch outlives who made it";
  EXPECT_GT(stats(loader)["reconnects"], 0);
  EXPECT_EQ(digest(loader), expected_digest());
}

TEST_F(DaemonAbiTest, WorkersAreForkedAndKilled) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  std::vector<pid_t> workers;
  for (int worker = 0; worker < 3; ++worker) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      // The first works until it is killed, the others for three epochs.
      for (std::uint64_t epoch = 0; worker == 0 || epoch < 3; ++epoch) {
        for (std::uint64_t position = 0; position < 120; position += 8) {
          std::vector<std::uint64_t> wanted;
          for (std::uint64_t n = 0; n < 8; ++n)
            wanted.push_back(position + n);
          if (read(dataset, epoch, wanted) == nullptr) ::_exit(1);
        }
      }
      ::_exit(0);
    }
    workers.push_back(pid);
  }
  const AbiLoader loader = load(dataset, {{"batch", 8}});
  EXPECT_THAT(keys_of_epoch(loader), SizeIs(120));
  ::kill(workers[0], SIGKILL);
  for (std::size_t n = 0; n < workers.size(); ++n) {
    int how = -1;
    ASSERT_EQ(::waitpid(workers[n], &how, 0), workers[n]);
    if (n > 0) {
      EXPECT_EQ(how, 0);
    }
  }
  EXPECT_THAT(keys_of_epoch(loader), SizeIs(120));
}

// A version of some megabytes in packs.
constexpr std::uint64_t kPackedFiles = 400;
constexpr std::uint64_t kPackedFileBytes = 20'000;

class PackedAbiTest : public DaemonAbiTest {
 protected:
  void SetUp() override {
    DaemonAbiTest::SetUp();
    mr_writer* writer = nullptr;
    const AbiJson with = {{"name", "packed@v1"},
                          {"settings", options()["settings"]},
                          {"staging", home.path("staging")}};
    expect_ok(mr_writer_open(with.dump().c_str(), &writer, &error));
    const std::string content(kPackedFileBytes, 'x');
    for (std::uint64_t n = 0; n < kPackedFiles; ++n) {
      const mr_field field = {"bin", content.data(), content.size()};
      expect_ok(mr_writer_write(writer, fmt::format("{:03}", n).c_str(), &field, 1, &error));
    }
    char* json = nullptr;
    expect_ok(mr_writer_commit(writer, &json, &error));
    take_text(json);
    mr_writer_close(writer);
  }
  std::uint64_t fetched_bytes() const {
    std::uint64_t fetched = 0;
    std::istringstream rows(run("usage --by version --json"));
    for (std::string row; std::getline(rows, row);)
      fetched += AbiJson::parse(row, nullptr, false).value("fetched_bytes", std::uint64_t{0});
    return fetched;
  }
  static constexpr std::uint64_t kBytes = kPackedFiles * kPackedFileBytes;
  // With the headers of the packs, which are tars.
  static constexpr std::uint64_t kPackBytes = kPackedFiles * (kPackedFileBytes + 1600);
};

TEST_F(PackedAbiTest, FetchesEveryByteOnceForAllRanksAndEpochs) {
  const AbiDataset dataset = open(options("packed@v1"));
  ASSERT_NE(dataset, nullptr);
  for (int rank = 0; rank < 4; ++rank) {
    const AbiLoader loader =
        load(dataset, {{"batch", 10}, {"rank", rank}, {"world", 4}, {"ranks_per_node", 4}});
    for (int epoch = 0; epoch < 3; ++epoch)
      EXPECT_THAT(keys_of_epoch(loader), SizeIs(100));
  }
  EXPECT_GE(fetched_bytes(), kBytes);
  EXPECT_LE(fetched_bytes(), kPackBytes);
}

TEST_F(PackedAbiTest, WhatASamplerDealsIsFetchedBeforeItIsRead) {
  const AbiDataset dataset = open(options("packed@v1"));
  ASSERT_NE(dataset, nullptr);
  const AbiSampler sampler = sample(dataset, {{"batch", 10}});
  std::vector<std::uint64_t> positions(10);
  std::size_t count = 0;
  const auto deal = [&] {
    expect_ok(mr_sampler_next(sampler.get(), positions.data(), 10, &count, &error));
  };
  deal();
  EXPECT_EQ(fetched_bytes(), 0U) << "the first batch has the store to itself";
  deal();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (fetched_bytes() < kBytes && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(fetched_bytes(), kBytes) << "though nobody has read anything";
  // A worker that is forked leaves the plan of its parent alone.
  const pid_t worker = ::fork();
  if (worker == 0) {
    for (int step = 0; step < 3; ++step)
      deal();
    ::_exit(read(dataset, 0, positions) == nullptr ? 1 : 0);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(worker, &how, 0), worker);
  EXPECT_EQ(how, 0);
  for (int step = 2; step < 40; ++step) {
    deal();
    ASSERT_NE(read(dataset, 0, positions), nullptr) << failure_text;
  }
  EXPECT_LE(fetched_bytes(), kPackBytes);
}

TEST_F(DaemonAbiTest, HeldBatchesStayAsTheyAre) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  std::vector<AbiBatch> held;
  for (std::uint64_t n = 0; n < 200; ++n)
    held.push_back(read(dataset, 0, {n % 120}));
  const AbiBatch all = read(dataset, 0, [] {
    std::vector<std::uint64_t> positions(120);
    for (std::uint64_t n = 0; n < 120; ++n)
      positions[n] = n;
    return positions;
  }());
  ASSERT_NE(all, nullptr) << failure_text;
  const std::vector<std::string> expected = texts(all, "data");
  for (std::size_t n = 0; n < held.size(); ++n) {
    ASSERT_NE(held[n], nullptr) << failure_text;
    EXPECT_EQ(texts(held[n], "data")[0], expected[n % 120]) << n;
  }
}

TEST_F(DaemonAbiTest, ReplacesWhatCannotBeHad) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  std::filesystem::remove(data.path("c1/010"));
  const AbiLoader raising = load(dataset, {{"batch", 120}});
  EXPECT_EQ(next(raising), nullptr);
  EXPECT_THAT(failure_text, HasSubstr("'c1/010'"));
  failure_text.clear();
  const AbiLoader replacing = load(dataset, {{"batch", 16}, {"on_error", "substitute"}});
  EXPECT_THAT(keys_of_epoch(replacing), SizeIs(120));
  EXPECT_EQ(failure_text, "");
  EXPECT_EQ(stats(replacing)["failures"][0]["key"], "c1/010");
}

TEST_F(DaemonAbiTest, RefusesADaemonOfAnotherStore) {
  const AbiDataset dataset = open(options());
  ASSERT_NE(dataset, nullptr);
  AbiJson with = options();
  home.make_directory("other");
  with["settings"]["store"] = home.path("other");
  EXPECT_THAT(refusal(with), HasSubstr("serves the store"));
}

TEST_F(DaemonAbiTest, ReadsByItselfWhereNoDaemonCanBeHad) {
  AbiJson with = options();
  with["program"] = "/nowhere/millrace";
  EXPECT_THAT(refusal(with), HasSubstr("'/nowhere/millrace' cannot be started"));
  with["engine"] = "auto";
  const AbiDataset dataset = open(with);
  EXPECT_EQ(info(dataset)["engine"], "process");
  EXPECT_THAT(quiet.text(), ContainsRegex("warn.*this process reads by itself"));
}

}  // namespace
}  // namespace millrace
