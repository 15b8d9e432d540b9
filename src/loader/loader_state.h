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
  std::string reader = {};  // Which idea of a sample: "files", "webdataset", ...
  std::string split = {};   // A SplitRule's text, or empty.
  std::uint64_t samples = 0;
  bool operator==(const StateSource&) const = default;
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
  std::uint64_t epoch = 0;
  // All positions below are delivered, by all ranks.
  std::uint64_t position = 0;
  // The phase that the job is in, and the one that follows when its shares are about to change.
  std::vector<MixPhase> phases = {};
  // Of what was delivered, by this rank or by all: the number of samples in it tells.
  DeliveryDigest delivered = {};

  bool operator==(const LoaderState&) const = default;
};

// As docs/formats/loader_state.md has it: two lines of text.
std::string encode_loader_state(const LoaderState& state);
// Takes any bytes. kCorruption for what is damaged, kUnsupported for another format or for
// algorithms that this release does not have; both say where.
Result<LoaderState> decode_loader_state(std::string_view text);

// Whether a job can go on from a saved state. `now` is what the job is made with; its position,
// phases and digest do not count. kInvalidArgument names the field that differs, with both values.
Status check_loader_state(const LoaderState& saved, const LoaderState& now);

}  // namespace millrace
