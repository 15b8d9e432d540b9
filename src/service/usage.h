#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "platform/disk.h"
#include "service/periodic_save.h"
#include "service/usage_row.h"
#include "vfs/read_observer.h"

namespace millrace {

struct UsageOptions {
  // Of (version or bucket, principal, run). Beyond it, what was used longest ago is folded
  // together.
  std::size_t rows_max = 4096;
  // Readers that are counted one by one at a time; each takes 2.5 KiB.
  std::size_t accounts_max = 4096;
  // Versions, and buckets, that have metrics of their own.
  std::size_t names_max = 100;
  // How much a kill may lose.
  Duration save_period = std::chrono::seconds(5);
};

// Who read what: bytes, requests, and bytes that the store had to deliver, by version or
// bucket, principal and run. Kept in a file.
//
// Invariants:
//  1. What is counted is in the sum of all rows for ever: folding rows together loses names, never
//     counts. A kill loses what was counted since the last save.
//  2. A count is in an account, or in a row, and moves from the first to the second.
//  3. Metrics show what the file holds, counts and names: a kill takes nothing from them, and no
//     series ever sinks.
//
// All methods are safe from any thread. What it is made with outlives it, and so do its accounts'
// users.
class Usage final : public ReadObserver {
 public:
  struct Parts {
    Disk& disk;
    Clock& clock;
    Executor& work;  // Saves; may block.
    std::string path;
  };
  // kCorruption when the file is none of ours: it is left alone.
  static Result<std::unique_ptr<Usage>> open(Parts parts, UsageOptions options = {});
  // Saves.
  ~Usage() override;

  std::shared_ptr<ReadAccount> account(std::string_view what, const Caller& caller) override
      MR_EXCLUDES(mutex_);
  // In the order of their keys, with all that was counted by now.
  std::vector<UsageRow> rows() MR_EXCLUDES(mutex_);
  // Writes the file if anything was counted. Blocks.
  Status save() MR_EXCLUDES(saving_, mutex_);
  // By version and by bucket, in the Prometheus text format, as of the last save that succeeded:
  // at most `names_max` of each, and the others together. What was shown by its name once always
  // is.
  std::string render_prometheus() MR_EXCLUDES(mutex_);

 private:
  class Account;
  struct Row {
    UsageCounts counts;
    WallTime last{};
  };

  Usage(Parts parts, UsageOptions options);
  Status load() MR_EXCLUDES(mutex_);
  // Moves what accounts have into rows, and drops accounts that nobody uses.
  void settle() MR_REQUIRES(mutex_);
  void fold() MR_REQUIRES(mutex_);
  // Where there is room, gives names to those that were read most.
  void name_more() MR_REQUIRES(mutex_);
  std::vector<UsageRow> listed() const MR_REQUIRES(mutex_);

  const Parts parts_;
  const UsageOptions options_;
  Mutex saving_;  // Held over the disk; taken before mutex_.

  Mutex mutex_;
  std::map<UsageKey, std::shared_ptr<Account>> accounts_ MR_GUARDED_BY(mutex_);
  std::map<UsageKey, Row> rows_ MR_GUARDED_BY(mutex_);
  bool changed_ MR_GUARDED_BY(mutex_) = false;
  // The versions and buckets that have series of their own. Each keeps a row.
  std::set<std::string> named_ MR_GUARDED_BY(mutex_);
  std::string metrics_ MR_GUARDED_BY(mutex_);

  PeriodicSave saves_;
};

}  // namespace millrace
