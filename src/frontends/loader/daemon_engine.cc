#include "frontends/loader/daemon_engine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"

namespace millrace {
namespace {

constexpr std::size_t kRestingMax = 32;
// More than these wait for a daemon only where there is none, and then it counts no more either.
constexpr std::size_t kUnsentLossesMax = 1024;
constexpr Duration kTryAgainMin = std::chrono::milliseconds(20);
constexpr Duration kTryAgainMax = std::chrono::seconds(2);
constexpr Duration kReportTimeout = std::chrono::seconds(2);

}  // namespace

// A plan that the daemon holds. It is lost with the connection; what is announced later makes a
// new one.
class DaemonEngine::SentPlan final : public BatchPlan {
 public:
  explicit SentPlan(DaemonEngine& engine) : engine_(engine) {}

  void extend(const RequestContext& context, std::span<const PlannedSample> samples) override {
    if (client_ == nullptr || client_->is_broken()) {
      auto connected = engine_.connect(context, true);
      client_ = connected ? *std::move(connected) : nullptr;
      begin_ = sent_;
    }
    sent_ += samples.size();
    if (client_ != nullptr) (void)client_->extend_plan(context, samples);
  }
  void advance(std::uint64_t samples_done) override {
    if (client_ == nullptr || client_->is_broken() || samples_done <= begin_) return;
    (void)client_->advance_plan(samples_done - begin_);
  }

 private:
  DaemonEngine& engine_;
  std::shared_ptr<LoaderClient> client_;
  std::uint64_t sent_ = 0;   // Samples, over all connections.
  std::uint64_t begin_ = 0;  // Of this connection's.
};

Result<std::shared_ptr<DaemonEngine>> DaemonEngine::open(const RequestContext& context,
                                                         Options options,
                                                         std::vector<SourceChoice> choices,
                                                         bool& reached) {
  std::shared_ptr<DaemonEngine> engine(new DaemonEngine(std::move(options), std::move(choices)));
  MR_ASSIGN_OR_RETURN(Reached opened, engine->reach(context, reached));
  engine->facts_ = std::move(opened.sources);
  for (std::size_t n = 0; n < engine->facts_.size(); ++n) {
    SourceChoice& choice = engine->choices_[n];
    if (!engine->facts_[n].version.empty()) choice.name = engine->facts_[n].version;
    choice.reader = engine->facts_[n].reader;
    choice.content = engine->facts_[n].content_digest;
  }
  engine->rest(std::move(opened.client));
  return engine;
}

Result<DaemonEngine::Reached> DaemonEngine::reach(const RequestContext& context,
                                                  bool& reached) const {
  reached = false;
  for (Duration pause = kTryAgainMin;; pause = std::min(2 * pause, kTryAgainMax)) {
    auto client = LoaderClient::connect(options_.socket);
    if (!client && client.error().code() == StatusCode::kNotFound) {
      MR_RETURN_IF_ERROR(options_.start_daemon(context));
      client = LoaderClient::connect(options_.socket);
    }
    if (!client) return failure(client.error());
    reached = true;
    auto opened = (*client)->open(context, choices_, options_.run, options_.job);
    if (opened && opened->store != options_.store) {
      return failure(StatusCode::kConflict,
                     fmt::format("the daemon at '{}' serves the store {}, and not {}: set another "
                                 "'socket', or end it with 'millrace stop'",
                                 options_.socket, opened->store, options_.store));
    }
    if (opened) return Reached{.client = *std::move(client), .sources = std::move(opened->sources)};
    // It went away while it was asked: another one will answer.
    const bool is_lost =
        (*client)->is_broken() && opened.error().code() == StatusCode::kUnavailable;
    if (!is_lost) return failure(opened.error());
    system_clock().sleep_until(system_clock().now() + pause, &context.cancellation());
    MR_RETURN_IF_ERROR(context.check(system_clock()));
  }
}

Result<std::shared_ptr<LoaderClient>> DaemonEngine::connect(const RequestContext& context,
                                                            bool fresh) {
  if (!fresh) {
    if (auto client = take_resting()) return client;
  }
  bool reached = false;
  MR_ASSIGN_OR_RETURN(Reached opened, reach(context, reached));
  return std::move(opened.client);
}

std::shared_ptr<LoaderClient> DaemonEngine::take_resting() {
  MutexLock lock(mutex_);
  if (resting_.empty()) return nullptr;
  std::shared_ptr<LoaderClient> client = std::move(resting_.back());
  resting_.pop_back();
  return client;
}

void DaemonEngine::report(const LoaderReport& report) {
  {
    MutexLock lock(mutex_);
    if (unsent_.losses.size() + report.losses.size() > kUnsentLossesMax) unsent_.losses.clear();
    unsent_ += report;
  }
  // Where all connections are busy, the first that is done takes it along.
  if (auto client = take_resting()) rest(std::move(client));
}

void DaemonEngine::rest(std::shared_ptr<LoaderClient> client) {
  LoaderReport report;
  if (!client->is_broken()) {
    MutexLock lock(mutex_);
    report = std::exchange(unsent_, {});
  }
  if (!report.empty()) {
    const RequestContext context(system_clock().now() + kReportTimeout, "loader");
    const Status told = client->report(context, report);
    // What the daemon refuses it would refuse again.
    if (!told.ok() && client->is_broken()) {
      MutexLock lock(mutex_);
      unsent_ += report;
    }
  }
  MutexLock lock(mutex_);
  if (!client->is_broken() && resting_.size() < kRestingMax) resting_.push_back(std::move(client));
}

Result<std::vector<LostPlace>> DaemonEngine::lost(const RequestContext& context) {
  MR_ASSIGN_OR_RETURN(std::shared_ptr<LoaderClient> client, connect(context, false));
  auto found = client->lost(context);
  rest(std::move(client));
  return found;
}

Result<BatchAnswer> DaemonEngine::read(const RequestContext& context, std::uint64_t epoch,
                                       std::span<const PlacedSample> places) {
  for (Duration pause = kTryAgainMin;; pause = std::min(2 * pause, kTryAgainMax)) {
    auto client = connect(context, false);
    Status why;
    if (client) {
      auto answer = (*client)->read(context, epoch, places);
      const bool is_lost = (*client)->is_broken();
      rest(*std::move(client));
      if (answer || !is_lost || context.cancellation().requested()) return answer;
      why = answer.error();
    } else {
      why = client.error();
      // What the daemon says of the datasets will not change.
      if (!is_transient(why.code()) && why.code() != StatusCode::kNotFound) return failure(why);
    }
    reconnects_.fetch_add(1);
    if (system_clock().now() + pause >= context.deadline()) {
      return failure(StatusCode::kDeadlineExceeded,
                     fmt::format("a batch could not be read in time: {}", why.to_string()));
    }
    if (log_enabled(LogLevel::kInfo)) {
      log_info("the daemon is asked again", {{"why", why.to_string()}});
    }
    system_clock().sleep_until(system_clock().now() + pause, &context.cancellation());
    MR_RETURN_IF_ERROR(context.check(system_clock()));
  }
}

std::unique_ptr<BatchPlan> DaemonEngine::start_plan(std::shared_ptr<const Caller>) {
  // The daemon knows who is at the other end of a connection.
  return std::make_unique<SentPlan>(*this);
}

}  // namespace millrace
