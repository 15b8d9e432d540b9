#pragma once

#include <millrace.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/log.h"
#include "tests/dataset/source_world.h"

namespace millrace {

// Owns what the interface hands out.
struct AbiCloser {
  void operator()(mr_dataset* dataset) const { mr_dataset_close(dataset); }
  void operator()(mr_loader* loader) const { mr_loader_close(loader); }
  void operator()(mr_sampler* sampler) const { mr_sampler_close(sampler); }
  void operator()(mr_batch* batch) const { mr_batch_release(batch); }
};
using AbiDataset = std::unique_ptr<mr_dataset, AbiCloser>;
using AbiLoader = std::unique_ptr<mr_loader, AbiCloser>;
using AbiSampler = std::unique_ptr<mr_sampler, AbiCloser>;
using AbiBatch = std::unique_ptr<mr_batch, AbiCloser>;
using AbiJson = nlohmann::ordered_json;

// A user with settings of their own and a directory of samples, who knows no C++.
class AbiWorld : public ::testing::Test {
 protected:
  AbiWorld() { home.make_directory("store"); }

  // Files "c<class>/<number>" of a few bytes that tell them apart.
  void make_files(int classes, int files) {
    for (int c = 0; c < classes; ++c) {
      for (int n = 0; n < files; ++n)
        data.write(fmt::format("c{}/{:03}", c, n), fmt::format("content {} of class {}", n, c));
    }
  }
  AbiJson options(const std::string& name) const {
    return {{"datasets", {{{"name", name}}}},
            {"engine", engine},
            {"settings",
             {{"store", home.path("store")},
              {"cache", home.path("cache")},
              {"socket", home.path("socket")}}}};
  }
  AbiJson options() const { return options(data.root()); }

  AbiDataset open(const AbiJson& with) {
    mr_dataset* dataset = nullptr;
    expect_ok(mr_dataset_open(with.dump().c_str(), &dataset, &error));
    return AbiDataset(dataset);
  }
  AbiLoader load(const AbiDataset& dataset, const AbiJson& with) {
    mr_loader* loader = nullptr;
    expect_ok(mr_loader_open(dataset.get(), with.dump().c_str(), &loader, &error));
    return AbiLoader(loader);
  }
  AbiSampler sample(const AbiDataset& dataset, const AbiJson& with) {
    mr_sampler* sampler = nullptr;
    expect_ok(mr_sampler_open(dataset.get(), with.dump().c_str(), &sampler, &error));
    return AbiSampler(sampler);
  }

  // The next batch; null at the end of an epoch, and after a failure, which is kept as text.
  AbiBatch next(const AbiLoader& loader) {
    mr_batch* batch = nullptr;
    const int code = mr_loader_next(loader.get(), 120, &batch, &error);
    if (code != MR_OK && code != MR_END) failure_text = take_error();
    return AbiBatch(batch);
  }
  AbiBatch read(const AbiDataset& dataset, std::uint64_t epoch,
                const std::vector<std::uint64_t>& positions) {
    mr_batch* batch = nullptr;
    const int code = mr_dataset_read(dataset.get(), epoch, positions.data(), positions.size(), 120,
                                     &batch, &error);
    if (code != MR_OK) failure_text = take_error();
    return AbiBatch(batch);
  }

  static mr_column column(const AbiBatch& batch, const std::string& name) {
    mr_column found{};
    for (std::size_t n = 0; n < mr_batch_columns(batch.get()); ++n) {
      mr_column each{};
      mr_batch_column(batch.get(), n, &each);
      if (each.name == name) found = each;
    }
    EXPECT_NE(found.name, nullptr) << name;
    return found;
  }
  static std::vector<std::string> texts(const AbiBatch& batch, const std::string& name) {
    const mr_column from = column(batch, name);
    std::vector<std::string> all;
    for (std::size_t n = 0; n < mr_batch_samples(batch.get()); ++n) {
      all.emplace_back(static_cast<const char*>(from.data) + from.offsets[n],
                       from.offsets[n + 1] - from.offsets[n]);
    }
    return all;
  }
  static std::vector<std::uint64_t> positions(const AbiBatch& batch) {
    const std::uint64_t* first = mr_batch_positions(batch.get());
    return {first, first + mr_batch_samples(batch.get())};
  }

  // Keys of the rest of the epoch.
  std::vector<std::string> keys_of_epoch(const AbiLoader& loader) {
    std::vector<std::string> keys;
    while (const AbiBatch batch = next(loader)) {
      for (const std::string& key : texts(batch, "__key__"))
        keys.push_back(key);
    }
    return keys;
  }
  std::string state(const AbiLoader& loader) {
    char* text = nullptr;
    expect_ok(mr_loader_state(loader.get(), &text, &error));
    return take_text(text);
  }
  std::string digest(const AbiLoader& loader) {
    char* text = nullptr;
    expect_ok(mr_loader_digest(loader.get(), &text, &error));
    return take_text(text);
  }
  std::string added(const std::string& a, const std::string& b) {
    char* text = nullptr;
    expect_ok(mr_digest_add(a.c_str(), b.c_str(), &text, &error));
    return take_text(text);
  }
  AbiJson stats(const AbiLoader& loader) {
    char* text = nullptr;
    expect_ok(mr_loader_stats(loader.get(), &text, &error));
    return AbiJson::parse(take_text(text));
  }
  AbiJson info(const AbiDataset& dataset) {
    char* text = nullptr;
    expect_ok(mr_dataset_info(dataset.get(), &text, &error));
    return AbiJson::parse(take_text(text));
  }

  void expect_ok(int code) { EXPECT_EQ(code, MR_OK) << (code == MR_OK ? "" : take_error()); }
  // What the last call complained about, with the name of its code.
  std::string take_error() {
    if (error == nullptr) return "no error";
    std::string text = fmt::format("{}: {}", mr_error_name(error), mr_error_message(error));
    mr_error_free(std::exchange(error, nullptr));
    return text;
  }
  static std::string take_text(char* text) {
    const std::string taken = text == nullptr ? "" : text;
    mr_text_free(text);
    return taken;
  }
  // The complaint about options.
  std::string refusal(const AbiJson& with) {
    mr_dataset* dataset = nullptr;
    EXPECT_NE(mr_dataset_open(with.dump().c_str(), &dataset, &error), MR_OK);
    mr_dataset_close(dataset);
    return take_error();
  }
  std::string loader_refusal(const AbiDataset& dataset, const AbiJson& with) {
    mr_loader* loader = nullptr;
    EXPECT_NE(mr_loader_open(dataset.get(), with.dump().c_str(), &loader, &error), MR_OK);
    mr_loader_close(loader);
    return take_error();
  }

  std::string engine = "process";
  const LogCapture quiet;
  const ScratchTree home{"/tmp/"};
  const ScratchTree data;
  mr_error* error = nullptr;
  std::string failure_text;
};

}  // namespace millrace
