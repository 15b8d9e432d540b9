#include "frontends/loader/loader_connection.h"

#include <sys/socket.h>

#include <utility>

#include "base/log.h"
#include "platform/passed_files.h"

namespace millrace {
namespace {

constexpr std::uint64_t kTimeoutMsMax = std::uint64_t{3600} * 1000;

std::uint64_t head_number(const LoaderMessage& message, std::string_view name) {
  const auto at = message.head.find(name);
  return at != message.head.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}
std::string head_text(const LoaderMessage& message, std::string_view name) {
  const auto at = message.head.find(name);
  return at != message.head.end() && at->is_string() ? at->get<std::string>() : std::string();
}

LoaderMetricAction metric_action(FaultAction action) {
  switch (action) {
    case FaultAction::kRaise:
      break;
    case FaultAction::kSkip:
      return LoaderMetricAction::kSkip;
    case FaultAction::kSubstitute:
      return LoaderMetricAction::kSubstitute;
  }
  return LoaderMetricAction::kRaise;
}

}  // namespace

LoaderConnection::LoaderConnection(AcceptedSocket accepted, const LoaderService& service,
                                   LossesOfJobs& losses, bool refused)
    : socket_(std::move(accepted.socket)),
      principal_(std::move(accepted.principal)),
      service_(service),
      losses_(losses),
      refused_(refused),
      caller_(std::make_shared<const Caller>(Caller{.principal = principal_, .run = {}})) {}

void LoaderConnection::call_off() {
  cancellation_->request();
  (void)::shutdown(socket_.descriptor(), SHUT_RDWR);
}

void LoaderConnection::serve() {
  serve_messages();
  // The client learns of it now, and not when this is taken apart.
  (void)::shutdown(socket_.descriptor(), SHUT_RDWR);
  plan_.reset();
  given_.clear();
  ended_.store(true);
}

void LoaderConnection::serve_messages() {
  for (;;) {
    const auto message = receive_message(socket_.descriptor());
    if (!message) {
      // A client that talks nonsense hears why, if it still listens.
      if (message.error().code() == StatusCode::kCorruption) (void)refuse(message.error());
      return;
    }
    if (message->is_end || cancellation_->requested()) return;
    if (const Status status = answer(*message); !status.ok()) {
      log_debug("a loader's connection ends", {{"error", status.to_string()}});
      return;
    }
  }
}

Status LoaderConnection::refuse(const Status& status) {
  return send_message(socket_.descriptor(), {{"error", encode_status(status)}});
}

RequestContext LoaderConnection::context(std::uint64_t timeout_ms) const {
  const auto timeout = std::chrono::milliseconds(std::min(timeout_ms, kTimeoutMsMax));
  return RequestContext(system_clock().now() + timeout, caller_).with_cancellation(cancellation_);
}

Status LoaderConnection::answer(const LoaderMessage& message) {
  const std::string operation = head_text(message, "op");
  if (operation == "open") return answer_open(message);
  if (engine_ == nullptr) {
    return refuse({StatusCode::kInvalidArgument, "datasets are opened before all else"});
  }
  if (operation == "read") return answer_read(message);
  if (operation == "report") return answer_report(message);
  if (operation == "lost") return answer_lost();
  if (operation == "extend") return extend_plan(message);
  if (operation == "advance") {
    if (plan_ != nullptr) plan_->advance(head_number(message, "samples"));
    return {};
  }
  return refuse({StatusCode::kUnsupported, "the daemon knows no operation '" + operation + "'"});
}

Status LoaderConnection::answer_open(const LoaderMessage& message) {
  if (head_number(message, "protocol") != kLoaderProtocol) {
    return refuse(
        {StatusCode::kUnsupported,
         "the daemon is of another release than the loader: end it with 'millrace stop'"});
  }
  if (refused_) {
    return refuse({StatusCode::kResourceExhausted, "the daemon has too many loaders"});
  }
  const auto choices = decode_choices(message.tail.bytes());
  if (!choices) return refuse(choices.error());
  caller_ = std::make_shared<const Caller>(
      Caller{.principal = principal_, .run = head_text(message, "run")});
  job_ = head_text(message, "job");
  plan_.reset();
  auto opened = service_.sources.open(context(head_number(message, "timeout_ms")), *choices);
  if (!opened) return refuse(opened.error());
  engine_ = *std::move(opened);
  datasets_.clear();
  for (std::size_t n = 0; n < choices->size(); ++n) {
    const std::string& version = engine_->sources()[n].version;
    datasets_.push_back(version.empty() ? (*choices)[n].name : version);
  }
  return send_message(socket_.descriptor(), {{"opened", true}, {"store", service_.store}},
                      as_bytes(encode_facts(engine_->sources())));
}

void LoaderConnection::take_back(const LoaderMessage& message, std::string_view name,
                                 bool may_reuse) {
  const auto numbers = message.head.find(name);
  if (numbers == message.head.end() || !numbers->is_array()) return;
  for (const LoaderJson& number : *numbers) {
    if (!number.is_number_unsigned()) continue;
    const auto given = given_.find(number.get<std::uint64_t>());
    if (given == given_.end()) continue;
    if (!may_reuse) given->second->retire();
    given_.erase(given);
  }
}

Status LoaderConnection::answer_read(const LoaderMessage& message) {
  take_back(message, "released", true);
  take_back(message, "kept", false);
  const auto places = decode_places(message.tail.bytes());
  if (!places) return refuse(places.error());
  const RequestContext plain = context(head_number(message, "timeout_ms"));
  const auto answer =
      engine_->read_into(head_number(message, "planned") != 0 ? plain.with_plan() : plain, memory_,
                         head_number(message, "epoch"), *places);
  if (!answer) return refuse(answer.error());
  if (!answer->failed.empty()) {
    return send_message(socket_.descriptor(), {{"failed", answer->failed.size()}},
                        as_bytes(encode_failures(answer->failed)));
  }
  count(answer->batch);
  return give(answer->batch);
}

void LoaderConnection::count(const Batch& batch) {
  Metrics& metrics = service_.metrics;
  metrics.counter(MetricId::kLoaderBatches).add();
  metrics.counter(MetricId::kLoaderSamples).add(batch.view->samples());
  metrics.counter(MetricId::kLoaderBytes).add(batch.view->bytes().size());
  stage(LoaderMetricStage::kStore).add(batch.view->head().store_ns / 1000);
  stage(LoaderMetricStage::kDecode).add(batch.view->head().decode_ns / 1000);
}

Counter& LoaderConnection::stage(LoaderMetricStage stage) {
  return service_.metrics.counter(MetricId::kLoaderTime, {static_cast<std::size_t>(stage)});
}

Status LoaderConnection::answer_report(const LoaderMessage& message) {
  auto losses = decode_losses(message.tail.bytes());
  if (!losses) return refuse(losses.error());
  stage(LoaderMetricStage::kWaiting).add(head_number(message, "waiting_us"));
  stage(LoaderMetricStage::kConsumer).add(head_number(message, "consumer_us"));
  losses_.add(job_, *losses);
  for (SampleLoss& loss : *losses) {
    const PlacedSample& place = loss.failure.place;
    if (place.source >= datasets_.size()) {
      return refuse({StatusCode::kInvalidArgument, "there is no such dataset"});
    }
    service_.metrics
        .counter(MetricId::kLoaderFailedSamples,
                 {static_cast<std::size_t>(metric_action(loss.action))})
        .add();
    service_.failed.add({.run = caller_->run,
                         .dataset = datasets_[place.source],
                         .sample = place.sample,
                         .key = std::move(loss.failure.key),
                         .action = std::string(fault_action_name(loss.action)),
                         .error = loss.failure.why.to_string()});
  }
  return send_message(socket_.descriptor(), {{"noted", true}});
}

Status LoaderConnection::answer_lost() {
  const std::vector<LostPlace> lost = losses_.of(job_);
  return send_message(socket_.descriptor(), {{"lost", lost.size()}}, encode_lost(lost));
}

Status LoaderConnection::give(const Batch& batch) {
  while (given_.size() >= kGivenMax) {
    given_.begin()->second->retire();
    given_.erase(given_.begin());
  }
  BatchMemory& memory = *batch.memory;
  given_.emplace(memory.number(), batch.memory);
  return send_message(socket_.descriptor(),
                      {{"memory", memory.number()}, {"memory_bytes", memory.size()}}, {},
                      {memory.descriptor()});
}

Status LoaderConnection::extend_plan(const LoaderMessage& message) {
  const auto samples = decode_planned(message.tail.bytes());
  if (!samples) return refuse(samples.error());
  if (plan_ == nullptr) plan_ = engine_->start_plan(caller_);
  plan_->extend(context(head_number(message, "timeout_ms")), *samples);
  return send_message(socket_.descriptor(), {{"planned", samples->size()}});
}

}  // namespace millrace
