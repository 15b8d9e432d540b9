#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "loader/batch_assembler.h"

namespace millrace {

// What becomes of a batch with samples that cannot be had.
enum class FaultAction : std::uint8_t {
  kRaise,       // The batch fails.
  kSkip,        // It has fewer samples.
  kSubstitute,  // The next position of the epoch whose sample can be had stands in.
};

// "raise", "skip", "substitute"; and back: kInvalidArgument says what there is.
std::string_view fault_action_name(FaultAction action);
Result<FaultAction> parse_fault_action(std::string_view text);

// A sample that could not be had.
struct SampleLoss {
  std::uint64_t epoch = 0;
  SampleFailure failure = {};
  FaultAction action = FaultAction::kRaise;
};

// What a loader tells of itself, for those who look at many.
struct LoaderReport {
  // Samples that could not be had since the last report.
  std::vector<SampleLoss> losses = {};
  // Of the training since then: waiting for batches, and busy with them.
  Duration waiting{};
  Duration consumer{};

  LoaderReport& operator+=(const LoaderReport& other);
  bool empty() const { return losses.empty() && waiting == Duration() && consumer == Duration(); }
};

}  // namespace millrace
