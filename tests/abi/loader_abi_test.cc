// Datasets, loaders and samplers through the C interface, with the engine in this process.

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <tuple>

#include <gmock/gmock.h>

#include "tests/abi/abi_world.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LoaderAbiTest : public AbiWorld {
 protected:
  LoaderAbiTest() { make_files(3, 20); }
};

TEST_F(LoaderAbiTest, TellsWhatADirectoryHolds) {
  const AbiDataset dataset = open(options());
  EXPECT_EQ(mr_dataset_samples(dataset.get()), 60u);
  const AbiJson about = info(dataset);
  EXPECT_EQ(about["samples"], 60);
  EXPECT_EQ(about["engine"], "process");
  EXPECT_EQ(about["datasets"][0]["classes"], AbiJson({"c0", "c1", "c2"}));
  EXPECT_EQ(about["datasets"][0]["reader"], "files");
  EXPECT_EQ(about["datasets"][0]["digest"].get<std::string>().size(), 64u);
  EXPECT_EQ(mr_abi_version(), static_cast<std::uint32_t>(MR_ABI_VERSION));
}

TEST_F(LoaderAbiTest, DeliversEverySampleOnceInColumns) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 8}});
  EXPECT_EQ(mr_loader_steps(loader.get()), 8u);
  std::set<std::string> seen;
  while (const AbiBatch batch = next(loader)) {
    const std::vector<std::string> keys = texts(batch, "__key__");
    const std::vector<std::string> contents = texts(batch, "data");
    const mr_column label = column(batch, "label");
    EXPECT_STREQ(label.type, "int64");
    EXPECT_EQ(label.uniform, 1);
    EXPECT_EQ(label.dimensions, 0u);
    EXPECT_EQ(label.present, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(label.data) % 64, 0u);
    EXPECT_EQ(column(batch, "data").uniform, 0);
    for (std::size_t n = 0; n < keys.size(); ++n) {
      EXPECT_TRUE(seen.insert(keys[n]).second) << keys[n] << " came twice";
      std::int64_t number = 0;
      std::memcpy(&number, static_cast<const char*>(label.data) + 8 * n, 8);
      EXPECT_EQ(keys[n].substr(0, 2), fmt::format("c{}", number));
      EXPECT_EQ(contents[n],
                fmt::format("content {} of class {}", std::stoi(keys[n].substr(3)), number));
    }
  }
  EXPECT_EQ(failure_text, "");
  EXPECT_THAT(seen, SizeIs(60));
}

TEST_F(LoaderAbiTest, BeginsTheNextEpochInAnotherOrder) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 16}});
  const std::vector<std::string> first = keys_of_epoch(loader);
  EXPECT_EQ(mr_loader_epoch(loader.get()), 0u);
  const std::vector<std::string> second = keys_of_epoch(loader);
  EXPECT_EQ(mr_loader_epoch(loader.get()), 1u);
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::ranges::is_permutation(first, second));
  expect_ok(mr_loader_set_epoch(loader.get(), 0, &error));
  EXPECT_EQ(keys_of_epoch(loader), first);
}

TEST_F(LoaderAbiTest, ReadsPositionsAsALoaderDelivers) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 7}, {"epoch", 3}});
  const AbiBatch batch = next(loader);
  ASSERT_NE(batch, nullptr);
  const AbiBatch again = read(dataset, 3, positions(batch));
  ASSERT_NE(again, nullptr) << failure_text;
  EXPECT_EQ(texts(batch, "__key__"), texts(again, "__key__"));
  EXPECT_EQ(texts(batch, "data"), texts(again, "data"));
  EXPECT_EQ(mr_batch_epoch(again.get()), 3u);
  EXPECT_EQ(mr_batch_seeds(batch.get())[2], mr_batch_seeds(again.get())[2]);
  EXPECT_EQ(read(dataset, 0, {60}), nullptr);
  EXPECT_THAT(failure_text, HasSubstr("position 60 is not below the 60 samples"));
}

// Adds up what some ranks deliver in so many steps, and says where the job is then.
class TopologyAbiTest : public LoaderAbiTest {
 protected:
  std::string run(const AbiDataset& dataset, int world, int batch, std::uint64_t steps,
                  std::string& at, std::string sum) {
    const std::string from = at;
    for (int rank = 0; rank < world; ++rank) {
      AbiJson with = {{"batch", batch}, {"rank", rank}, {"world", world}, {"prefetch", 3}};
      if (!from.empty()) with["state"] = from;
      const AbiLoader loader = load(dataset, with);
      const std::string before = digest(loader);
      if (world > 1) {
        EXPECT_EQ(before, kNothing);
      }
      for (std::uint64_t step = 0; step < steps; ++step) {
        if (next(loader) == nullptr) break;
      }
      EXPECT_EQ(failure_text, "");
      // A job of one rank has what came before in its own.
      sum = world > 1 ? added(sum, digest(loader)) : digest(loader);
      at = state(loader);
    }
    return sum;
  }
  // Puts the sum where a single rank goes on from.
  const std::string kNothing = std::string(32, '0') + ":0";
};

TEST_F(TopologyAbiTest, GoesOnFromEveryStepWithOtherRanks) {
  const AbiDataset dataset = open(options());
  std::string at;
  const std::string whole = run(dataset, 1, 5, 100, at, kNothing);
  for (std::uint64_t steps = 1; steps < 5; ++steps) {
    at.clear();
    std::string sum = run(dataset, 2, 5, steps, at, kNothing);
    sum = run(dataset, 3, 4, 1, at, sum);
    sum = run(dataset, 4, 3, 100, at, sum);
    EXPECT_EQ(sum, whole) << "after " << steps << " steps";
    EXPECT_THAT(at, HasSubstr("\"epoch\":1,\"position\":0"));
  }
}

TEST_F(TopologyAbiTest, OneRankGoesOnWithTheDigestOfItsState) {
  const AbiDataset dataset = open(options());
  std::string at;
  const std::string whole = run(dataset, 1, 5, 100, at, kNothing);
  at.clear();
  run(dataset, 1, 7, 3, at, kNothing);
  EXPECT_EQ(run(dataset, 1, 2, 100, at, kNothing), whole);
}

TEST_F(LoaderAbiTest, SamplerDealsWhatALoaderReads) {
  const AbiDataset dataset = open(options());
  const AbiJson with = {{"batch", 6}, {"rank", 1}, {"world", 2}};
  const AbiLoader loader = load(dataset, with);
  const AbiSampler sampler = sample(dataset, with);
  EXPECT_EQ(mr_sampler_steps(sampler.get()), mr_loader_steps(loader.get()));
  std::vector<std::uint64_t> dealt(6);
  std::size_t count = 0;
  std::uint64_t step = 0;
  while (const AbiBatch batch = next(loader)) {
    expect_ok(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error));
    EXPECT_EQ(positions(batch), std::vector(dealt.begin(), dealt.begin() + count));
    char* text = nullptr;
    expect_ok(mr_sampler_state(sampler.get(), ++step, &text, &error));
    EXPECT_EQ(take_text(text), state(loader));
  }
  EXPECT_EQ(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error), MR_END);
  char* text = nullptr;
  expect_ok(mr_sampler_digest(sampler.get(), &text, &error));
  EXPECT_EQ(take_text(text), digest(loader));
  EXPECT_EQ(mr_sampler_next(sampler.get(), dealt.data(), 5, &count, &error), MR_INVALID_ARGUMENT);
  EXPECT_THAT(take_error(), HasSubstr("room for 5 positions"));
  EXPECT_EQ(mr_sampler_state(sampler.get(), 99, &text, &error), MR_INVALID_ARGUMENT);
  take_error();
}

// Steps are counted behind what was asked for, and now and then before it.
TEST_F(LoaderAbiTest, StatesOfASamplerHaveTheDigestOfTheirSteps) {
  const AbiDataset dataset = open(options());
  std::vector<std::string> states;  // Behind each step of a loader.
  const AbiLoader loader = load(dataset, {{"batch", 5}});
  states.push_back(state(loader));
  while (next(loader) != nullptr)
    states.push_back(state(loader));
  const std::string whole = digest(loader);

  const AbiSampler sampler = sample(dataset, {{"batch", 5}});
  const auto text_of = [&](auto call) {
    char* text = nullptr;
    expect_ok(call(&text));
    return take_text(text);
  };
  const auto digest_of = [&](const AbiSampler& of) {
    return text_of([&](char** text) { return mr_sampler_digest(of.get(), text, &error); });
  };
  std::vector<std::uint64_t> dealt(7);
  std::size_t count = 0;
  const auto take_all = [&](const AbiSampler& of) {
    int code = MR_OK;
    while (code == MR_OK)
      code = mr_sampler_next(of.get(), dealt.data(), dealt.size(), &count, &error);
    EXPECT_EQ(code, MR_END);
  };
  for (int step = 0; step < 6; ++step)
    expect_ok(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error));
  for (std::uint64_t step = 0; step < states.size(); ++step) {
    const std::string saved =
        text_of([&](char** text) { return mr_sampler_state(sampler.get(), step, text, &error); });
    EXPECT_EQ(saved, states[step]) << "behind step " << step;
    // It goes on with what was delivered, as a sampler and as a loader.
    const AbiSampler resumed = sample(dataset, {{"batch", 7}, {"state", saved}});
    const AbiLoader loading = load(dataset, {{"batch", 7}, {"state", saved}});
    if (step + 1 == states.size()) break;  // The next epoch.
    take_all(resumed);
    keys_of_epoch(loading);
    EXPECT_EQ(digest_of(resumed), whole);
    EXPECT_EQ(digest(loading), whole);
  }
  // Of the epochs before, and of this one from its beginning.
  take_all(sampler);
  expect_ok(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error));
  EXPECT_THAT(
      text_of([&](char** text) { return mr_sampler_state(sampler.get(), 0, text, &error); }),
      HasSubstr("\"delivered\":\"" + whole));
}

TEST_F(LoaderAbiTest, SamplersKeepWhatWasLostBefore) {
  const AbiDataset dataset = open(options());
  std::filesystem::remove(data.path("c2/000"));
  const AbiLoader loader = load(dataset, {{"batch", 60}, {"on_error", "skip"}});
  ASSERT_NE(next(loader), nullptr) << failure_text;
  const std::string from = state(loader);
  EXPECT_THAT(from, HasSubstr("\"lost\":{\"count\":1"));
  const AbiSampler opened = sample(dataset, {{"batch", 6}, {"state", from}});
  const AbiSampler loaded = sample(dataset, {{"batch", 6}});
  expect_ok(mr_sampler_load_state(loaded.get(), from.c_str(), &error));
  for (const AbiSampler* sampler : {&opened, &loaded}) {
    char* text = nullptr;
    expect_ok(mr_sampler_state(sampler->get(), 0, &text, &error));
    EXPECT_EQ(take_text(text), from);
  }
}

TEST_F(LoaderAbiTest, LosesNothingByATimeout) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 10}});
  std::vector<std::string> keys;
  for (;;) {
    mr_batch* batch = nullptr;
    const int code = mr_loader_next(loader.get(), 1e-9, &batch, &error);
    const AbiBatch owned(batch);
    if (code == MR_END) break;
    if (code != MR_OK) {
      EXPECT_EQ(code, MR_AGAIN);
      EXPECT_EQ(take_error(), "no error");
      continue;
    }
    for (const std::string& key : texts(owned, "__key__"))
      keys.push_back(key);
  }
  const AbiLoader other = load(dataset, {{"batch", 10}});
  EXPECT_EQ(keys, keys_of_epoch(other));
}

TEST_F(LoaderAbiTest, RefusesWhatItDoesNotKnow) {
  AbiJson with = options();
  with["shufle"] = true;
  EXPECT_THAT(refusal(with), HasSubstr("invalid_argument: options: shufle is not known"));
  with = options();
  with["datasets"][0]["split"] = "a-b";
  EXPECT_THAT(refusal(with), HasSubstr("invalid_argument"));
  with = options();
  with["settings"]["stoer"] = "x";
  EXPECT_THAT(refusal(with), HasSubstr("settings.stoer is not known"));
  with = options();
  with["datasets"] = AbiJson::array();
  EXPECT_THAT(refusal(with), HasSubstr("datasets is no list of datasets"));
  with = options();
  with["epoch_samples"] = 7;
  EXPECT_THAT(refusal(with), HasSubstr("epoch_samples is the size of an epoch that is mixed by"));
  EXPECT_THAT(refusal(options(data.path("nothing"))), HasSubstr("not_found"));
  EXPECT_THAT(refusal(options("absent@v1")), HasSubstr("dataset 'absent@v1'"));
  mr_dataset* dataset = nullptr;
  EXPECT_EQ(mr_dataset_open("{", &dataset, nullptr), MR_INVALID_ARGUMENT);

  const AbiDataset good = open(options());
  EXPECT_THAT(loader_refusal(good, AbiJson::object()), HasSubstr("batch is needed"));
  EXPECT_THAT(loader_refusal(good, {{"batch", 1}, {"world", 61}}), HasSubstr("use fewer ranks"));
  EXPECT_THAT(loader_refusal(good, {{"batch", 1}, {"rank", 2}, {"world", 2}}), HasSubstr("rank 2"));
  EXPECT_THAT(loader_refusal(good, {{"batch", 1}, {"on_error", "ignore"}}),
              HasSubstr("raise, skip"));
}

TEST_F(LoaderAbiTest, RefusesAStateOfAnotherJob) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 4}});
  ASSERT_NE(next(loader), nullptr);
  AbiJson with = options();
  with["seed"] = 7;
  const AbiDataset other = open(with);
  EXPECT_THAT(loader_refusal(other, {{"batch", 4}, {"state", state(loader)}}),
              HasSubstr("its seed is 0, but now it is 7"));
  EXPECT_EQ(mr_loader_load_state(loader.get(), "nonsense", &error), MR_CORRUPTION);
  take_error();
}

// Each has as many samples as the one that saved it, of the same content.
TEST_F(LoaderAbiTest, RefusesAStateOfOtherSamplesOfTheVersion) {
  const ScratchTree tree;
  for (int n = 0; n < 40; ++n)
    tree.write(fmt::format("c{}/{:03}.txt", n % 2, n), "text");
  const auto opened = [&](const char* option, const AbiJson& value) {
    AbiJson with = options(tree.root());
    with["datasets"][0]["directory"] = "c0";
    with["datasets"][0]["split"] = "0-1/2";
    with["datasets"][0][option] = value;
    return open(with);
  };
  const AbiLoader saved = load(opened("reader", "files"), {{"batch", 4}});
  ASSERT_NE(next(saved), nullptr);
  const std::string from = state(saved);
  const auto complaint = [&](const char* option, const AbiJson& value) {
    const AbiDataset dataset = opened(option, value);
    EXPECT_EQ(mr_dataset_samples(dataset.get()), 10u);
    const std::string text = loader_refusal(dataset, {{"batch", 4}, {"state", from}});
    mr_sampler* sampler = nullptr;
    EXPECT_EQ(
        mr_sampler_open(dataset.get(), AbiJson({{"batch", 4}, {"state", from}}).dump().c_str(),
                        &sampler, &error),
        MR_INVALID_ARGUMENT);
    EXPECT_EQ(take_error(), text);
    return text;
  };
  EXPECT_THAT(complaint("directory", "c1"),
              HasSubstr("its sources[0].directory is 'c0', but now it is 'c1'"));
  EXPECT_THAT(complaint("split", "1-2/2"), HasSubstr("sources[0].split"));
  EXPECT_THAT(complaint("split_seed", 7), HasSubstr("sources[0].split"));
  EXPECT_THAT(complaint("reader", "grouped"), HasSubstr("sources[0].reader"));
}

TEST_F(LoaderAbiTest, MixesAndChangesWeightsAtOneStep) {
  const ScratchTree more;
  for (int n = 0; n < 50; ++n)
    more.write(fmt::format("x/{:03}", n), "more");
  AbiJson with = options();
  with["datasets"] = {{{"name", data.root()}, {"weight", 1}},
                      {{"name", more.root()}, {"weight", 1}}};
  with["epoch_samples"] = 2000;
  const AbiDataset dataset = open(with);
  EXPECT_EQ(mr_dataset_samples(dataset.get()), 2000u);
  std::vector<std::string> sums;
  for (const int prefetch : {1, 8}) {
    const AbiLoader loader = load(dataset, {{"batch", 50}, {"prefetch", prefetch}});
    std::uint64_t of_second = 0;
    for (int step = 0; step < 40; ++step) {
      if (step == 4)
        expect_ok(mr_loader_set_shares(loader.get(), R"([{"weight":0},{"weight":1}])", &error));
      const AbiBatch batch = next(loader);
      ASSERT_NE(batch, nullptr) << failure_text;
      for (std::size_t n = 0; step >= 20 && n < 50; ++n)
        of_second += mr_batch_sources(batch.get())[n];
    }
    EXPECT_EQ(of_second, 20u * 50u) << "all of the second, long after the change";
    sums.push_back(digest(loader));
  }
  EXPECT_EQ(sums[0], sums[1]);
}

TEST_F(LoaderAbiTest, GoesOnFromAStateWithOtherWeights) {
  const auto opened = [&](double second, const std::string& from) {
    AbiJson with = options();
    with["datasets"] = {{{"name", data.root()}, {"weight", 1}, {"directory", "c0"}},
                        {{"name", data.root()}, {"weight", second}, {"directory", "c1"}}};
    with["epoch_samples"] = 4000;
    if (!from.empty()) with["state"] = from;
    return open(with);
  };
  const AbiLoader saved = load(opened(1, ""), {{"batch", 50}});
  for (int step = 0; step < 10; ++step)
    ASSERT_NE(next(saved), nullptr) << failure_text;
  const std::string from = state(saved);

  const AbiDataset dataset = opened(9, "");
  const AbiLoader loader = load(dataset, {{"batch", 50}, {"state", from}});
  const AbiSampler sampler = sample(dataset, {{"batch", 50}, {"state", from}});
  const AbiDataset of_worker = opened(9, from);
  std::vector<std::uint64_t> dealt(50);
  std::size_t count = 0;
  std::uint64_t of_second = 0;
  // The end of this epoch and the whole next one.
  for (int step = 0; step < 70 + 1 + 80; ++step) {
    const AbiBatch batch = next(loader);
    const int code = mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error);
    ASSERT_EQ(code, batch == nullptr ? MR_END : MR_OK) << failure_text;
    if (batch == nullptr) continue;
    ASSERT_EQ(positions(batch), std::vector(dealt.begin(), dealt.begin() + count));
    const AbiBatch again = read(of_worker, mr_batch_epoch(batch.get()), positions(batch));
    ASSERT_NE(again, nullptr) << failure_text;
    ASSERT_EQ(texts(again, "__key__"), texts(batch, "__key__")) << "at step " << step;
    // The change comes within 768 samples.
    for (std::size_t n = 0; step >= 16 && n < count; ++n)
      of_second += mr_batch_sources(batch.get())[n];
  }
  EXPECT_NEAR(static_cast<double>(of_second) / (134 * 50), 0.9, 0.01);
  char* text = nullptr;
  expect_ok(mr_sampler_digest(sampler.get(), &text, &error));
  EXPECT_EQ(take_text(text), digest(loader));
}

TEST_F(LoaderAbiTest, FailsSkipsOrReplacesWhatIsGone) {
  const AbiDataset dataset = open(options());
  data.write("c1/007", "another content");
  std::filesystem::remove(data.path("c2/000"));
  const AbiLoader raising = load(dataset, {{"batch", 60}});
  EXPECT_EQ(next(raising), nullptr);
  EXPECT_THAT(failure_text, HasSubstr("precondition_failed: sample"));
  EXPECT_THAT(failure_text, HasSubstr("c"));
  failure_text.clear();

  const AbiLoader skipping = load(dataset, {{"batch", 10}, {"on_error", "skip"}});
  const std::vector<std::string> left = keys_of_epoch(skipping);
  EXPECT_EQ(failure_text, "");
  EXPECT_THAT(left, SizeIs(58));
  EXPECT_EQ(stats(skipping)["failed"], 2);
  EXPECT_THAT(stats(skipping)["failures"], SizeIs(2));

  std::string expected;
  for (const int world : {1, 3}) {
    std::string sum;
    std::size_t delivered = 0;
    for (int rank = 0; rank < world; ++rank) {
      const AbiLoader replacing = load(
          dataset, {{"batch", 10}, {"on_error", "substitute"}, {"rank", rank}, {"world", world}});
      const std::vector<std::string> keys = keys_of_epoch(replacing);
      EXPECT_EQ(failure_text, "");
      EXPECT_FALSE(std::ranges::count(keys, "c2/000"));
      delivered += keys.size();
      sum = sum.empty() ? digest(replacing) : added(sum, digest(replacing));
    }
    EXPECT_EQ(delivered, 60u);
    if (expected.empty()) expected = sum;
    EXPECT_EQ(sum, expected) << "the same samples stand in, whatever the ranks";
  }
}

TEST_F(LoaderAbiTest, GivesUpWhenNothingCanBeHad) {
  const AbiDataset dataset = open(options());
  for (int c = 0; c < 3; ++c)
    std::filesystem::remove_all(data.path(fmt::format("c{}", c)));
  const AbiLoader loader =
      load(dataset, {{"batch", 10}, {"on_error", "skip"}, {"failures_max", 15}});
  EXPECT_EQ(keys_of_epoch(loader), std::vector<std::string>());
  EXPECT_THAT(failure_text, HasSubstr("samples in a row cannot be had"));
}

TEST_F(LoaderAbiTest, AnEmptyBatchTellsItsColumnsByASampleThatCanBeHad) {
  const AbiDataset dataset = open(options());
  std::filesystem::remove_all(data.path("c0"));  // The first samples of all.
  const AbiBatch batch = read(dataset, 0, {});
  ASSERT_NE(batch, nullptr) << failure_text;
  EXPECT_EQ(mr_batch_samples(batch.get()), 0u);
  EXPECT_EQ(column(batch, "data").data_bytes, 0u);
  EXPECT_STREQ(column(batch, "label").type, "int64");
  EXPECT_EQ(column(batch, "label").uniform, 1);
}

TEST_F(LoaderAbiTest, ChildrenOfAProcessThatReadsByItselfAreToldSo) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 10}});
  const AbiBatch batch = next(loader);
  ASSERT_NE(batch, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::uint64_t position = 0;
    mr_batch* none = nullptr;
    const int read_code = mr_dataset_read(dataset.get(), 0, &position, 1, 10, &none, nullptr);
    const int next_code = mr_loader_next(loader.get(), 10, &none, nullptr);
    const bool readable = texts(batch, "__key__").size() == 10;
    ::_exit(read_code == MR_UNSUPPORTED && next_code == MR_UNSUPPORTED && readable ? 0 : 1);
  }
  int how = -1;
  ASSERT_EQ(::waitpid(child, &how, 0), child);
  EXPECT_EQ(how, 0);
  EXPECT_NE(next(loader), nullptr);
}

TEST_F(LoaderAbiTest, SamplersChangeSharesAsLoadersDo) {
  AbiJson with = options();
  with["datasets"] = {{{"name", data.root()}, {"weight", 1}, {"directory", "c0"}},
                      {{"name", data.root()}, {"weight", 1}, {"directory", "c1"}}};
  with["epoch_samples"] = 2000;
  const AbiDataset dataset = open(with);
  const AbiLoader loader = load(dataset, {{"batch", 50}});
  const AbiSampler sampler = sample(dataset, {{"batch", 50}});
  std::vector<std::uint64_t> dealt(50);
  std::size_t count = 0;
  for (int step = 0; step < 40; ++step) {
    if (step == 3) {
      const char* const shares = R"([{"weight":3},{"weight":1}])";
      expect_ok(mr_loader_set_shares(loader.get(), shares, &error));
      expect_ok(mr_sampler_set_shares(sampler.get(), shares, &error));
    }
    ASSERT_NE(next(loader), nullptr) << failure_text;
    expect_ok(mr_sampler_next(sampler.get(), dealt.data(), dealt.size(), &count, &error));
  }
  char* text = nullptr;
  expect_ok(mr_sampler_digest(sampler.get(), &text, &error));
  EXPECT_EQ(take_text(text), digest(loader));
}

TEST_F(LoaderAbiTest, OpensAndReadsAreCalledOff) {
  const AbiDataset dataset = open(options());
  mr_cancellation* const cancellation = mr_cancellation_make();
  const std::uint64_t position = 0;
  mr_batch* batch = nullptr;
  expect_ok(
      mr_dataset_read_cancellable(dataset.get(), 0, &position, 1, 0, cancellation, &batch, &error));
  mr_batch_release(batch);
  mr_cancellation_request(cancellation);
  EXPECT_EQ(
      mr_dataset_read_cancellable(dataset.get(), 0, &position, 1, 0, cancellation, &batch, nullptr),
      MR_CANCELLED);
  mr_dataset* other = nullptr;
  EXPECT_EQ(mr_dataset_open_cancellable(options().dump().c_str(), cancellation, &other, nullptr),
            MR_CANCELLED);
  mr_cancellation_free(cancellation);
}

TEST_F(LoaderAbiTest, TellsHowManySamplesAreDroppedOrPadded) {
  const AbiDataset dataset = open(options());
  for (const auto& [last, dropped, padded] :
       {std::tuple("even", 0, 0), std::tuple("drop", 12, 0), std::tuple("pad", 0, 4)}) {
    const AbiLoader loader = load(dataset, {{"batch", 8}, {"world", 2}, {"last", last}});
    EXPECT_EQ(stats(loader)["dropped"], dropped) << last;
    EXPECT_EQ(stats(loader)["padded"], padded) << last;
    keys_of_epoch(loader);
    ASSERT_NE(next(loader), nullptr) << "the next epoch";
    EXPECT_EQ(stats(loader)["dropped"], dropped) << last;
  }
}

TEST_F(LoaderAbiTest, TellsWhereTimeGoes) {
  const AbiDataset dataset = open(options());
  const AbiLoader loader = load(dataset, {{"batch", 30}});
  keys_of_epoch(loader);
  const AbiJson told = stats(loader);
  EXPECT_EQ(told["batches"], 2);
  EXPECT_EQ(told["samples"], 60);
  EXPECT_GT(told["bytes"], 60 * 20);
  EXPECT_GT(told["seconds"]["store"], 0.0);
  EXPECT_GT(told["seconds"]["decode"], 0.0);
  EXPECT_EQ(told["stuck"], nullptr);
}

}  // namespace
}  // namespace millrace
