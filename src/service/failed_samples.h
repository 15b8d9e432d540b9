#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/status.h"
#include "platform/disk.h"
#include "service/periodic_save.h"

namespace millrace {

// A sample that loaders of a run could not have.
struct FailedSample {
  std::string run = {};
  std::string dataset = {};  // A version; for what is not registered, where it lies.
  std::uint64_t sample = 0;
  std::string key = {};
  std::string action = {};  // What was done about it the last time: "raise", "skip", ...
  std::string error = {};
  std::uint64_t times = 0;
  WallTime last{};

  bool operator==(const FailedSample&) const = default;
};
// The dataset of the row that has what a run's list has no room for.
inline constexpr std::string_view kOtherFailures = "(other)";

// The file of all rows (docs/formats/failed_samples.md).
std::string encode_failed_samples(const std::vector<FailedSample>& rows);
// Lines that are damaged are reported and skipped. kCorruption when it is no such file at all.
Result<std::vector<FailedSample>> decode_failed_samples(std::string_view text,
                                                        const std::string& path);

struct FailedSamplesOptions {
  // Samples of a run that are listed one by one.
  std::size_t listed_max = 128;
  // Of all runs: beyond it, what failed longest ago is forgotten.
  std::size_t rows_max = 4096;
  // How much a kill may lose.
  Duration save_period = std::chrono::seconds(5);
};

// Which samples the loaders of each run could not have. Kept in a file, until the run is over and
// others need the room. Safe from any thread.
class FailedSamples {
 public:
  struct Parts {
    Disk& disk;
    Clock& clock;
    Executor& work;  // Saves; may block.
    std::string path;
  };
  // kCorruption when the file is none of ours: it is left alone. What is given outlives it.
  static Result<std::unique_ptr<FailedSamples>> open(Parts parts,
                                                     FailedSamplesOptions options = {});
  // Saves.
  ~FailedSamples();

  // Counts one more failure; its `times` and `last` do not matter. Without a run nothing is kept.
  void add(FailedSample failed) MR_EXCLUDES(mutex_);
  // In the order of dataset and sample.
  std::vector<FailedSample> of_run(const std::string& run) const MR_EXCLUDES(mutex_);
  // Writes the file if anything was added. Blocks.
  Status save() MR_EXCLUDES(saving_, mutex_);

 private:
  struct Key {
    std::string run = {};
    std::string dataset = {};
    std::uint64_t sample = 0;
    auto operator<=>(const Key&) const = default;
  };

  FailedSamples(Parts parts, FailedSamplesOptions options);
  Status load() MR_EXCLUDES(mutex_);
  std::size_t listed(const std::string& run) const MR_REQUIRES(mutex_);

  const Parts parts_;
  const FailedSamplesOptions options_;
  Mutex saving_;  // Held over the disk; taken before mutex_.

  mutable Mutex mutex_;
  std::map<Key, FailedSample> rows_ MR_GUARDED_BY(mutex_);
  bool changed_ MR_GUARDED_BY(mutex_) = false;

  PeriodicSave saves_;
};

}  // namespace millrace
