// The packs of a labelled dataset, read by those who know nothing of us: tar, and the webdataset
// library. Every sample comes out whole, and once.

#include <filesystem>
#include <map>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "dataset/sample_name.h"
#include "platform/file.h"
#include "tests/dataset/publish_world.h"
#include "tests/servers/child_process.h"

namespace millrace {
namespace {

// Prints each sample as a line of JSON: its key, and the SHA-256 of each of its parts.
constexpr std::string_view kReadSamples = R"(
import hashlib, json, sys, webdataset
for sample in webdataset.WebDataset(sys.argv[1:], shardshuffle=False):
    parts = {name: hashlib.sha256(data).hexdigest()
             for name, data in sample.items() if not name.startswith('__')}
    print(json.dumps({'key': sample['__key__'], 'shard': sample['__url__'], 'parts': parts}))
)";

class LabelledPacks : public ::testing::Test {
 protected:
  // Images of many sizes, some too large to be packed alone, each with a label and a description,
  // and labels that are all the same.
  void SetUp() override {
    for (int i = 0; i < 200; ++i) {
      const std::string name = fmt::format("train/{:03}/{:05}", i % 7, i);
      const std::size_t size = i % 25 == 0 ? 90'000 : 500 + (i * 7919) % 40'000;
      add(name, "jpg", publish_bytes(size, i));
      add(name, "cls", fmt::format("{}", i % 3));
      add(name, "json", fmt::format(R"({{"id":{}}})", i));
    }
    const auto report = world_.publish("labelled@v1");
    ASSERT_TRUE(report) << report.error().to_string();
    ASSERT_GT(report->packs, 10U);
    for (const std::string& key : world_.keys("labelled/v1/")) {
      ASSERT_TRUE(key.ends_with(".tar")) << "a part of a sample is not in a pack: " << key;
      const std::string file = world_.state.path(std::filesystem::path(key).filename().string());
      const auto got = world_.memory->get(world_.context, {.key = ObjectKey(key)});
      ASSERT_TRUE(got);
      std::ofstream(file, std::ios::binary) << got->data.text();
      packs_.push_back(file);
    }
  }

  void add(const std::string& name, const std::string& part, const std::string& bytes) {
    world_.tree.write(name + "." + part, bytes);
    samples_[name][part] = to_hex(sha256(as_bytes(bytes)));
  }

  PublishWorld world_;
  // The digest of each part of each sample.
  std::map<std::string, std::map<std::string, std::string>> samples_;
  std::vector<std::string> packs_;
};

TEST_F(LabelledPacks, TarReadsEverySampleFromOnePack) {
  std::map<std::string, std::set<std::string>> packs_of;
  world_.state.make_directory("out");
  for (const std::string& pack : packs_) {
    const auto listed = testing::run_command({"tar", "-xvf", pack, "-C", world_.state.path("out")});
    ASSERT_EQ(listed.status, 0) << listed.output;
    std::istringstream lines(listed.output);
    for (std::string path; std::getline(lines, path);)
      packs_of[path.substr(0, path.find('.'))].insert(pack);
  }
  EXPECT_EQ(packs_of.size(), samples_.size());
  for (const auto& [name, parts] : samples_) {
    EXPECT_EQ(packs_of[name].size(), 1U) << name << " is split over packs";
    for (const auto& [part, digest] : parts) {
      const auto bytes = read_file(world_.state.path("out/" + name + "." + part));
      ASSERT_TRUE(bytes) << bytes.error().to_string();
      EXPECT_EQ(to_hex(sha256(as_bytes(*bytes))), digest) << name << "." << part;
    }
  }
}

TEST_F(LabelledPacks, WebdatasetReadsEverySampleWhole) {
  const char* const root = std::getenv("MILLRACE_SOURCE_DIR");
  ASSERT_NE(root, nullptr) << "MILLRACE_SOURCE_DIR is not set: run it through ctest";
  const std::string python = fmt::format("{}/build/python/bin/python3", root);
  if (!std::filesystem::exists(python)) {
    GTEST_SKIP() << "no webdataset library here: 'tools/setup test' installs it from PyPI, when "
                    "that is reachable, to build/python";
  }
  std::vector<std::string> command = {python, "-c", std::string(kReadSamples)};
  command.insert(command.end(), packs_.begin(), packs_.end());
  const auto read = testing::run_command(command, {}, std::chrono::minutes(3));
  ASSERT_EQ(read.status, 0) << read.output;
  std::map<std::string, std::map<std::string, std::string>> seen;
  std::istringstream lines(read.output);
  for (std::string line; std::getline(lines, line);) {
    const auto sample = nlohmann::json::parse(line, nullptr, false);
    ASSERT_FALSE(sample.is_discarded()) << line;
    const bool first = seen.emplace(sample["key"], sample["parts"]).second;
    EXPECT_TRUE(first) << "it came twice, or in two pieces: " << line;
  }
  EXPECT_EQ(seen, samples_);
}

}  // namespace
}  // namespace millrace
