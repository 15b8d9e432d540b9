#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "loader/delivery_digest.h"
#include "loader/job_order.h"

namespace millrace {

// A dataset of a job, as a state knows it again.
struct StateSource {
  Sha256Digest content_digest{};
  std::string reader = {};     // Which idea of a sample: "files", "webdataset", ...
  std::string directory = {};  // Only what is below it; empty is all.
  std::string split = {};      // A SplitRule's text, or empty.
  std::uint64_t samples = 0;
  bool operator==(const StateSource&) const = default;
};

// A sample that could not be had, and was skipped or replaced.
struct LostSample {
  std::uint64_t source = 0;
  std::uint64_t sample = 0;
  bool operator==(const LostSample&) const = default;
};

// Those of a job: each is named once, the first kNamedMax of them; losses are counted in all
// epochs.
struct LostSamples {
  static constexpr std::size_t kNamedMax = 64;

  void add(const LostSample& lost);

  std::uint64_t count = 0;
  std::vector<LostSample> named = {};
  bool operator==(const LostSamples&) const = default;
};

// Where a job is: one for all its ranks, a few hundred bytes. What is not in it may be changed at a
// resume: world size, ranks per node, replication, workers, batch size, and what becomes of the
// last steps.
struct LoaderState {
  OrderMode mode = OrderMode::kBlock;
  std::uint64_t seed = 0;
  std::uint64_t window_rows = kWindowRows;
  std::uint64_t block_bytes = kOrderBlockBytes;
  std::uint64_t epoch_samples = 0;
  std::vector<StateSource> sources = {};
  // What the job was opened with, by which it is known whether somebody wants others now: those of
  // the phases also change while it runs. Empty in states of old: they go on as their phases say.
  std::vector<MixShare> shares = {};
  std::uint64_t epoch = 0;
  // All positions below are delivered, by all ranks.
  std::uint64_t position = 0;
  // How its datasets are mixed from the beginning of the epoch on, and each later change.
  std::vector<MixPhase> phases = {};
  // Of what was delivered, by this rank or by all: the number of samples in it tells.
  DeliveryDigest delivered = {};
  LostSamples lost = {};

  bool operator==(const LoaderState&) const = default;
};

// As docs/formats/loader_state.md has it: two lines of text.
std::string encode_loader_state(const LoaderState& state);
// Takes any bytes. kCorruption for what is damaged, kUnsupported for another format or for
// algorithms that this release does not have; both say where.
Result<LoaderState> decode_loader_state(std::string_view text);

// Whether a job can go on from a saved state. `now` is what the job is made with; its position,
// shares, phases and digest do not count. kInvalidArgument names the field that differs, with both
// values.
Status check_loader_state(const LoaderState& saved, const LoaderState& now);

}  // namespace millrace
