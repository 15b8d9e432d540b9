#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/request_context.h"
#include "base/status.h"
#include "dataset/registry_access.h"
#include "dataset/run_record.h"

namespace millrace {

// A run that is being recorded, from RunLog::start(). Thread-compatible.
struct RunRecording {
  RunId id = {};
  RunDescription description = {};
  std::uint64_t heartbeats = 0;
  // Whether there is a record of its start.
  bool recorded = false;
  // What gateways saw of it: finish() records it.
  RunObservation observed = {};
  // What could not be recorded because the store refuses writes. The run itself goes on.
  Status warning = {};
};

// A run that uses some content now.
struct LiveRun {
  RunId id = {};
  std::string name = {};
  WriterIdentity who = {};
  WallTime heartbeat{};
  std::vector<RunUse> versions = {};

  bool uses(const VersionRef& ref) const;
};

// The runs that used versions of this registry:
//
//   .millrace/runs/<run id>/{start,heartbeat,end}.json
//   .millrace/uses/<content digest>/<run id>[.end]     so that a listing finds a version's runs
//
// Not logs: a run has one writer, and its heartbeat is overwritten. Stateless, safe from any
// thread; what `access` refers to outlives it. Blocks.
class RunLog {
 public:
  explicit RunLog(RegistryAccess access) : access_(std::move(access)) {}

  // Records the start, and from then on keeps purges off what it uses, for as long as heartbeats
  // come. Where the store refuses writes (kPermissionDenied) it succeeds with a warning. A version
  // may be removed while this runs: whoever cares resolves it again afterwards.
  Result<RunRecording> start(const RequestContext& context, RunDescription description) const;
  // To be called once in each period. Does nothing for a run that is not recorded. Here and in
  // finish() refused writes become the recording's warning.
  Status heartbeat(const RequestContext& context, RunRecording& recording) const;
  // Does nothing for a run that is not recorded. Safe to repeat.
  Status finish(const RequestContext& context, RunRecording& recording,
                std::uint64_t exit_code) const;

  // The ids of all runs, newest first. One list for each 1,000.
  Result<std::vector<RunId>> ids(const RequestContext& context) const;
  // One run. Up to three GETs. kNotFound when there is none.
  Result<RunEntry> run(const RequestContext& context, const RunId& id) const;
  // The ids of the runs that ever used a content, newest first, by a listing alone.
  Result<std::vector<RunId>> users(const RequestContext& context,
                                   const Sha256Digest& content) const;
  // The runs that use a content now. One list for each 1,000 runs that ever used it; GETs only for
  // those that never ended.
  Result<std::vector<LiveRun>> live_users(const RequestContext& context,
                                          const Sha256Digest& content) const;

 private:
  struct StoredRecord {
    LogRecord record = {};
    // The later of what its writer and what the store say.
    WallTime written{};
  };
  // Success also when the store refuses writes, which becomes the recording's warning.
  Status put(const RequestContext& context, RunRecording& recording, const std::string& key,
             std::string kind, std::uint64_t number, nlohmann::json payload) const;
  // Nothing when there is no such object.
  Result<std::optional<StoredRecord>> read(const RequestContext& context,
                                           const std::string& key) const;
  Result<std::optional<LiveRun>> live_run(const RequestContext& context, const RunId& id) const;
  // Keys that mark what the run uses.
  std::vector<std::string> use_keys(const RunRecording& recording) const;

  const RegistryAccess access_;
};

}  // namespace millrace
