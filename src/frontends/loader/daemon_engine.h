#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "frontends/loader/loader_client.h"
#include "loader/batch_engine.h"
#include "loader/loader_job.h"

namespace millrace {

// The daemon of this machine, as who gives the samples of a job. A daemon that goes away is found
// or started again, and asked the same: its loaders do not notice, but for the time that it takes.
//
// Every read that is under way has a connection; those that rest are used again. Nothing runs here
// but the callers' threads. Safe from any thread.
class DaemonEngine final : public BatchEngine {
 public:
  struct Options {
    std::string socket;
    std::string store;  // What the daemon has to serve, as its setting says it.
    std::string run;
    std::string job = {};  // What its readers lose is kept under this name; empty: it is not.
    // Sees to it that a daemon runs. Called when none answers.
    std::function<Status(const RequestContext& context)> start_daemon;
  };
  // kNotFound or what start_daemon() says when there is no daemon; `reached` tells that from
  // failures of the datasets. kConflict when the daemon serves another store.
  static Result<std::shared_ptr<DaemonEngine>> open(const RequestContext& context, Options options,
                                                    std::vector<SourceChoice> choices,
                                                    bool& reached);

  std::string_view kind() const override { return "daemon"; }
  const std::vector<SourceFacts>& sources() const override { return facts_; }
  Result<BatchAnswer> read(const RequestContext& context, std::uint64_t epoch,
                           std::span<const PlacedSample> places) override;
  std::unique_ptr<BatchPlan> start_plan(std::shared_ptr<const Caller> caller) override;
  // Goes with the next connection that rests.
  void report(const LoaderReport& report) override MR_EXCLUDES(mutex_);
  // kUnavailable when the daemon goes away meanwhile.
  Result<std::vector<LostPlace>> lost(const RequestContext& context) override;
  std::uint64_t reconnects() const override { return reconnects_.load(); }

 private:
  class SentPlan;
  struct Reached {
    std::shared_ptr<LoaderClient> client = {};
    std::vector<SourceFacts> sources = {};
  };

  DaemonEngine(Options options, std::vector<SourceChoice> choices)
      : options_(std::move(options)), choices_(std::move(choices)) {}
  // One that rests, or a new one that has the datasets open.
  Result<std::shared_ptr<LoaderClient>> connect(const RequestContext& context, bool fresh);
  // A new connection that has the datasets open, to a daemon that is started where none runs.
  Result<Reached> reach(const RequestContext& context, bool& reached) const;
  std::shared_ptr<LoaderClient> take_resting() MR_EXCLUDES(mutex_);
  // Keeps it for later, once it has told what there is to report.
  void rest(std::shared_ptr<LoaderClient> client) MR_EXCLUDES(mutex_);

  const Options options_;
  // As resolved by the first open, so that later ones mean the same.
  std::vector<SourceChoice> choices_;
  std::vector<SourceFacts> facts_;
  std::atomic<std::uint64_t> reconnects_ = 0;
  Mutex mutex_;
  std::vector<std::shared_ptr<LoaderClient>> resting_ MR_GUARDED_BY(mutex_);
  LoaderReport unsent_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
