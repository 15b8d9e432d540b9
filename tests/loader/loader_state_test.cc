#include "loader/loader_state.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/checked_line.h"
#include "tests/loader/job_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;

LoaderState state_of_two() {
  LoaderState state{.mode = OrderMode::kBlock, .seed = 17, .epoch = 3, .position = 123'456};
  state.sources = {{.content_digest = {std::byte{0xAB}},
                    .reader = "files",
                    .directory = "train",
                    .split = "0-90/100",
                    .samples = 1'281'167},
                   {.content_digest = {std::byte{0xCD}}, .reader = "mds", .samples = 50'000}};
  state.shares = weights_of({0.3, 0.7});
  state.phases = {first_phase(weights_of({0.1, 0.7}))};
  state.phases.push_back(
      {.epoch = 3, .position = 124'800, .taken = {7, 8}, .shares = weights_of({1, 1e-9})});
  state.delivered.add(3, 1, 0, 5);
  return state;
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const std::size_t line = text.find('\n') + 1;
  std::string json(
      checked_text(std::string_view(text).substr(line, text.size() - line - 1)).value());
  const std::size_t at = json.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  json.replace(at, from.size(), to);
  return text.substr(0, line) + checked_line(json);
}

TEST(LoaderStateTest, ComesBackAsItWasAndIsSmall) {
  const LoaderState state = state_of_two();
  const std::string text = encode_loader_state(state);
  const auto decoded = decode_loader_state(text);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  EXPECT_EQ(*decoded, state);
  EXPECT_LT(text.size(), 1000U);
  LoaderState one = state;
  one.sources.resize(1);
  one.shares.resize(1);
  one.phases = {first_phase({MixShare{}})};
  EXPECT_LT(encode_loader_state(one).size(), 600U);
}

TEST(LoaderStateTest, EveryDamageIsSeen) {
  const std::string text = encode_loader_state(state_of_two());
  for (std::size_t n = 0; n < text.size(); ++n) {
    std::string damaged = text;
    damaged[n] = static_cast<char>(damaged[n] ^ 1);
    // The last line break may be absent.
    if (n + 1 < text.size()) {
      EXPECT_FALSE(decode_loader_state(damaged)) << n;
    }
    if (n + 1 < text.size()) {
      EXPECT_FALSE(decode_loader_state(text.substr(0, n))) << n;
    }
  }
}

TEST(LoaderStateTest, WhatWasSavedByOthersIsRefusedByName) {
  const std::string text = encode_loader_state(state_of_two());
  const auto refusal = [&](std::string_view from, std::string_view to) {
    const auto decoded = decode_loader_state(with(text, from, to));
    EXPECT_FALSE(decoded) << to;
    return decoded ? "" : decoded.error().to_string();
  };
  EXPECT_THAT(refusal("\"windows\":1", "\"windows\":2"), HasSubstr("algorithm 2 for 'windows'"));
  EXPECT_THAT(refusal("\"order\":\"block\"", "\"order\":\"py1e\""), HasSubstr("order"));
  EXPECT_THAT(refusal("\"seed\":17", "\"seed\":-17"), HasSubstr("seed"));
  EXPECT_THAT(refusal("\"seed\":17", "\"sead\":17"), HasSubstr("seed"));
  EXPECT_THAT(refusal("\"content\":\"ab", "\"content\":\"a"), HasSubstr("sources[0].content"));
  EXPECT_THAT(refusal("\"samples\":50000", "\"samples\":0"), HasSubstr("sources[1].samples"));
  EXPECT_THAT(refusal("\"taken\":[7,8]", "\"taken\":[7]"), HasSubstr("phases[1].taken"));
  EXPECT_THAT(refusal("\"taken\":[7,8]", "\"taken\":[7,\"8\"]"), HasSubstr("phases[1].taken"));
  EXPECT_THAT(refusal("\"weights\":[0.1,0.7]", "\"weights\":[0.1,[]]"), HasSubstr("phases[0]"));
  EXPECT_THAT(refusal("\"weights\":[0.1,0.7]", "\"chances\":[0.1,0.7]"), HasSubstr("phases[0]"));
  EXPECT_THAT(refusal("\"weights\":[0.3,0.7]", "\"weights\":[0.3]"), HasSubstr("weights"));
  EXPECT_THAT(refusal("\"window_rows\":20", "\"window_rows\":0"), HasSubstr("window_rows"));
  EXPECT_THAT(refusal("\"block_bytes\":4194304", "\"block_bytes\":0"), HasSubstr("block_bytes"));
  EXPECT_THAT(refusal("\"sources\":[", "\"sources\":[3,"), HasSubstr("sources[0]"));
  EXPECT_THAT(refusal("\"delivered\":\"", "\"delivered\":\"x"), HasSubstr("delivered"));
  EXPECT_EQ(decode_loader_state("millrace-loader-state 2\n").error().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(decode_loader_state("").error().code(), StatusCode::kCorruption);
}

TEST(LoaderStateTest, StatesOfOldHaveNoDirectoryAndNoShares) {
  LoaderState state = state_of_two();
  std::string text = with(encode_loader_state(state), "\"directory\":\"train\",", "");
  text = with(text, "\"weights\":[0.3,0.7],", "");
  const auto decoded = decode_loader_state(text);
  ASSERT_TRUE(decoded) << decoded.error().to_string();
  state.sources[0].directory = "";
  state.shares = {};
  EXPECT_EQ(*decoded, state);
}

TEST(LoaderStateTest, SaysWhichFieldIsOfAnotherJob) {
  const LoaderState saved = state_of_two();
  LoaderState moved = saved;
  moved.epoch = 9;
  moved.position = 1;
  moved.phases = {};
  moved.shares = {};
  EXPECT_TRUE(check_loader_state(saved, moved).ok());
  const auto complaint = [&](auto change) {
    LoaderState now = saved;
    change(now);
    return check_loader_state(saved, now).to_string();
  };
  EXPECT_THAT(complaint([](LoaderState& s) { s.seed = 18; }),
              HasSubstr("seed is 17, but now it is 18"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.mode = OrderMode::kFull; }), HasSubstr("order"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.window_rows = 9; }), HasSubstr("window_rows"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.block_bytes = 9; }), HasSubstr("block_bytes"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.epoch_samples = 9; }), HasSubstr("epoch_samples"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources.pop_back(); }), HasSubstr("sources"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources[1].reader = "files"; }),
              HasSubstr("sources[1].reader"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources[1].content_digest[0] = std::byte{1}; }),
              HasSubstr("sources[1].content"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources[0].split = ""; }),
              HasSubstr("sources[0].split is '0-90/100', but now it is ''"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources[0].directory = "val"; }),
              HasSubstr("sources[0].directory is 'train', but now it is 'val'"));
  EXPECT_THAT(complaint([](LoaderState& s) { s.sources[0].samples = 5; }),
              HasSubstr("sources[0].samples"));
}

// Saved in the middle of a step's topology, read by a job of another one.
TEST(LoaderStateTest, AJobGoesOnFromIt) {
  const std::vector<JobSource> sources = {job_source(3001, 1), job_source(1000, 2)};
  const JobOrderOptions options{.seed = 4};
  LoaderState state{.seed = 4, .phases = {first_phase(weights_of({1, 1}))}};
  for (const JobSource& source : sources) {
    state.sources.push_back({.content_digest = source.content_digest,
                             .reader = "files",
                             .samples = source.layout->samples()});
  }
  const JobEpoch whole = JobEpoch::make(options, sources, state.phases, 0).value();
  for (const Topology& topology : {Topology{.world = 1, .ranks_per_node = 1, .replication = 1},
                                   Topology{.world = 7, .ranks_per_node = 7, .replication = 1},
                                   Topology{.world = 4, .ranks_per_node = 2, .replication = 2}}) {
    const LoaderState loaded = decode_loader_state(encode_loader_state(state)).value();
    ASSERT_TRUE(check_loader_state(loaded, state).ok());
    state = loaded;
    const Dealing dealing = Dealing::make({.samples = whole.samples(),
                                           .start = state.position,
                                           .topology = topology,
                                           .batch = 13,
                                           .last = LastSteps::kEven})
                                .value();
    state.position = deliver(JobEpoch::make(options, sources, state.phases, 0).value(), dealing,
                             topology, topology.world == 4 ? dealing.steps() : 9, state.delivered);
  }
  DeliveryDigest all;
  for (std::uint64_t p = 0; p < whole.samples(); ++p) {
    all.add(0, p, whole.at(p).source, whole.at(p).sample);
  }
  EXPECT_EQ(state.position, whole.samples());
  EXPECT_EQ(state.delivered, all);
}

}  // namespace
}  // namespace millrace
