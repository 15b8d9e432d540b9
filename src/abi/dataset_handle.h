#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>

#include "abi/process_gateway.h"
#include "app/settings.h"
#include "base/clock.h"
#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/batch_engine.h"
#include "loader/batch_reader.h"
#include "loader/loader_job.h"
#include "loader/option_fields.h"

namespace millrace {

enum class EngineChoice : std::uint8_t { kAuto, kDaemon, kProcess };

// What mr_dataset_open() was asked for.
struct DatasetOptions {
  JobChoice job = {};
  FaultPolicy faults = {};
  std::string state = {};
  EngineChoice engine = EngineChoice::kAuto;
  LoadedSettings settings = {};
  std::string program = {};  // Empty: looked for.
  std::string run = {};
  std::string job_name = {};
  Duration timeout = std::chrono::minutes(5);
};
Result<DatasetOptions> parse_dataset_options(std::string_view json);
// The option "settings", which may be null: over environment, file and defaults.
Result<LoadedSettings> load_option_settings(const OptionFields::Document* settings);

// A dataset that a process has open, in that process and in those that it forks.
//
// Safe from any thread. A forked child finds no thread, socket or lock of its parent in use: what
// belongs to a process is made anew in each.
class DatasetHandle {
 public:
  static Result<std::shared_ptr<DatasetHandle>> open(DatasetOptions options,
                                                     std::shared_ptr<Cancellation> cancellation);
  ~DatasetHandle();
  DatasetHandle(const DatasetHandle&) = delete;
  DatasetHandle& operator=(const DatasetHandle&) = delete;

  const DatasetOptions& options() const { return options_; }
  const std::shared_ptr<const LoaderJob>& job() const { return job_; }
  const std::vector<MixPhase>& phases() const { return phases_; }
  const std::vector<SourceFacts>& sources() const { return sources_; }
  // "daemon" or "process".
  const std::string& kind() const { return kind_; }

  // That of this process, opened where it is not. kUnsupported in a child of a process that read by
  // itself; kPreconditionFailed when a directory or bucket is another one by now.
  Result<std::shared_ptr<BatchEngine>> engine(
      std::shared_ptr<Cancellation> cancellation = std::make_shared<Cancellation>());
  // The order of an epoch, with the weights that the dataset was opened with.
  Result<std::shared_ptr<const JobEpoch>> epoch(std::uint64_t epoch);

  RequestContext context(TimePoint deadline) const { return RequestContext(deadline, caller_); }
  const std::shared_ptr<const Caller>& caller() const { return caller_; }
  FailureRow& row() { return row_; }

 private:
  // What belongs to one process.
  struct Here {
    explicit Here(pid_t process) : pid(process) {}
    const pid_t pid;
    Mutex mutex;
    std::shared_ptr<BatchEngine> engine MR_GUARDED_BY(mutex);
    std::shared_ptr<const JobEpoch> last_epoch MR_GUARDED_BY(mutex);
  };

  explicit DatasetHandle(DatasetOptions options);
  Here& here();
  Result<std::shared_ptr<BatchEngine>> open_engine(const RequestContext& context, bool is_child);

  const DatasetOptions options_;
  const std::shared_ptr<const Caller> caller_;
  std::shared_ptr<const LoaderJob> job_;
  std::vector<MixPhase> phases_;
  std::vector<SourceFacts> sources_;
  std::string kind_;
  FailureRow row_;
  // The parent's is left alone in a child: its lock may be held for ever there.
  std::atomic<Here*> here_;
};

}  // namespace millrace
