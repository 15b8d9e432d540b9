#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/request_context.h"
#include "base/status.h"
#include "frontends/loader/loader_message.h"
#include "frontends/loader/losses_of_jobs.h"
#include "loader/process_engine.h"
#include "metrics/metrics.h"
#include "platform/listening_socket.h"
#include "service/failed_samples.h"
#include "service/loader_sources.h"

namespace millrace {

// What connections of loaders are served from. All that is referred to outlives them.
struct LoaderService {
  const LoaderSources& sources;
  FailedSamples& failed;
  Metrics& metrics;
  // How the daemon's store is set, which loaders compare with what they expect.
  std::string store;
};

// One loader that is connected: it opens datasets once, then asks for batches or tells its plan,
// one message at a time.
//
// 1. Memory that the client holds is not written to: it is in `given_` until the client returns it,
//    or is never used again.
// 2. No memory of one connection is ever given to another.
//
// serve() runs on a thread of its own; call_off() and ended() are safe from any.
class LoaderConnection {
 public:
  // `refused`: there are too many, and the client is told so. `losses` outlive it.
  LoaderConnection(AcceptedSocket accepted, const LoaderService& service, LossesOfJobs& losses,
                   bool refused);

  // Until the client goes, or is called off.
  void serve();
  // Ends what is under way, and the connection.
  void call_off();
  bool ended() const { return ended_.load(); }
  int descriptor() const { return socket_.descriptor(); }

 private:
  // More than any client holds that returns what it has: older ones are the client's own then.
  static constexpr std::size_t kGivenMax = 64;

  void serve_messages();
  // A failure ends the connection; what the client did wrong is answered.
  Status answer(const LoaderMessage& message);
  Status answer_open(const LoaderMessage& message);
  Status answer_read(const LoaderMessage& message);
  Status answer_report(const LoaderMessage& message);
  Status answer_lost();
  Status extend_plan(const LoaderMessage& message);
  // Forgets the memory that the client has named there, and writes to it again only if it may.
  void take_back(const LoaderMessage& message, std::string_view name, bool may_reuse);
  void count(const Batch& batch);
  Counter& stage(LoaderMetricStage stage);
  Status give(const Batch& batch);
  Status refuse(const Status& status);
  RequestContext context(std::uint64_t timeout_ms) const;

  const File socket_;
  const std::string principal_;
  const LoaderService& service_;
  LossesOfJobs& losses_;
  const bool refused_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  std::atomic<bool> ended_ = false;

  // The serving thread's own.
  std::shared_ptr<const Caller> caller_;
  std::string job_;
  std::vector<std::string> datasets_;  // As they are called, by their number.
  std::shared_ptr<ProcessEngine> engine_;
  BatchMemoryPool memory_;
  std::map<std::uint64_t, std::shared_ptr<BatchMemory>> given_;  // By its number, oldest first.
  std::unique_ptr<BatchPlan> plan_;                              // Of the engine.
};

}  // namespace millrace
