// Loaders of include/millrace.h.

#include <unistd.h>

#include <utility>

#include "abi/handles.h"
#include "app/json.h"
#include "loader/batch_loader.h"
#include "loader/loader_options.h"

struct mr_loader {
  pid_t process;
  std::shared_ptr<millrace::DatasetHandle> dataset;
  std::unique_ptr<millrace::BatchLoader> loader;
};

namespace millrace {
namespace {

Result<std::unique_ptr<mr_loader>> open_loader(const mr_dataset& dataset, std::string_view json) {
  MR_ASSIGN_OR_RETURN(const OptionFields::Document document, parse_options(json));
  OptionFields fields(document, "");
  MR_ASSIGN_OR_RETURN(LoaderOptions options, take_loader_options(fields));
  const LoaderStart start = take_start(fields);
  MR_RETURN_IF_ERROR(fields.finish());
  DatasetHandle& handle = *dataset.handle;
  options.prefetch.caller = handle.caller();
  LoaderState state = handle.job()->first_state();
  state.phases = handle.phases();
  state.epoch = start.epoch;
  if (!start.state.empty()) {
    MR_ASSIGN_OR_RETURN(state, decode_loader_state(start.state));
  }
  MR_ASSIGN_OR_RETURN(std::shared_ptr<BatchEngine> engine, handle.engine());
  auto opened = std::make_unique<mr_loader>();
  opened->process = ::getpid();
  opened->dataset = dataset.handle;
  MR_ASSIGN_OR_RETURN(opened->loader,
                      BatchLoader::resume(std::move(engine), handle.job(), options, state));
  return opened;
}

Status check_process(const mr_loader& loader) {
  if (loader.process == ::getpid()) return {};
  return {StatusCode::kUnsupported,
          "a loader stays with the process that opened it: open one in this process"};
}

double seconds_of(Duration duration) { return std::chrono::duration<double>(duration).count(); }

Json loss_document(const SampleLoss& loss) {
  const PlacedSample& place = loss.failure.place;
  return {{"epoch", loss.epoch},
          {"position", place.position},
          {"source", place.source},
          {"sample", place.sample},
          {"key", loss.failure.key},
          {"error", loss.failure.why.to_string()},
          {"action", fault_action_name(loss.action)}};
}

Json stats_document(const LoaderStats& stats) {
  Json failures = Json::array();
  for (const SampleLoss& loss : stats.failures)
    failures.push_back(loss_document(loss));
  return {{"batches", stats.batches},
          {"samples", stats.samples},
          {"bytes", stats.bytes},
          {"epoch", stats.epoch},
          {"step", stats.step},
          {"steps", stats.steps},
          {"ready", stats.ready},
          {"dropped", stats.dropped},
          {"padded", stats.padded},
          {"seconds",
           {{"waiting", seconds_of(stats.waiting)},
            {"store", seconds_of(stats.store)},
            {"decode", seconds_of(stats.decode)},
            {"consumer", seconds_of(stats.consumer)}}},
          {"failed", stats.failed},
          {"failures", std::move(failures)},
          {"stuck", stats.stuck.empty() ? Json(nullptr) : Json(stats.stuck)},
          {"reconnects", stats.reconnects}};
}

}  // namespace
}  // namespace millrace

extern "C" {

int mr_loader_open(mr_dataset* dataset, const char* options, mr_loader** loader, mr_error** error) {
  auto opened = millrace::open_loader(*dataset, options);
  if (!opened) return millrace::tell(opened.error(), error);
  *loader = opened->release();
  return MR_OK;
}

void mr_loader_close(mr_loader* loader) {
  if (loader == nullptr) return;
  // Its threads are the parent's, and cannot be waited for here.
  if (loader->process != ::getpid()) (void)loader->loader.release();
  delete loader;
}

int mr_loader_next(mr_loader* loader, double timeout, mr_batch** batch, mr_error** error) {
  if (const auto status = millrace::check_process(*loader); !status.ok()) {
    return millrace::tell(status, error);
  }
  constexpr millrace::Duration kForEver = std::chrono::hours(24 * 365 * 10);
  auto next = loader->loader->next(millrace::deadline_in(timeout, kForEver));
  if (!next) return millrace::tell(next.error(), error);
  if (next->kind == millrace::NextKind::kEndOfEpoch) return MR_END;
  if (next->kind == millrace::NextKind::kNotYet) return MR_AGAIN;
  *batch = millrace::give_batch(std::move(next->batch));
  return MR_OK;
}

void mr_loader_cancel(mr_loader* loader) {
  if (millrace::check_process(*loader).ok()) loader->loader->cancel();
}

uint64_t mr_loader_steps(const mr_loader* loader) { return loader->loader->steps(); }
uint64_t mr_loader_step(const mr_loader* loader) { return loader->loader->step(); }
uint64_t mr_loader_epoch(const mr_loader* loader) { return loader->loader->epoch(); }

int mr_loader_set_epoch(mr_loader* loader, uint64_t epoch, mr_error** error) {
  millrace::Status status = millrace::check_process(*loader);
  if (status.ok()) status = loader->loader->set_epoch(epoch);
  return millrace::tell(status, error);
}

int mr_loader_state(mr_loader* loader, char** state, mr_error** error) {
  return millrace::give_text(millrace::encode_loader_state(loader->loader->state()), state, error);
}

int mr_loader_load_state(mr_loader* loader, const char* state, mr_error** error) {
  millrace::Status status = millrace::check_process(*loader);
  if (!status.ok()) return millrace::tell(status, error);
  const auto decoded = millrace::decode_loader_state(state);
  if (!decoded) return millrace::tell(decoded.error(), error);
  return millrace::tell(loader->loader->load(*decoded), error);
}

int mr_loader_set_shares(mr_loader* loader, const char* shares, mr_error** error) {
  millrace::Status status = millrace::check_process(*loader);
  if (!status.ok()) return millrace::tell(status, error);
  const auto document = millrace::parse_options(shares);
  if (!document) return millrace::tell(document.error(), error);
  auto parsed = millrace::parse_shares(*document);
  if (!parsed) return millrace::tell(parsed.error(), error);
  return millrace::tell(loader->loader->set_shares(*std::move(parsed)), error);
}

int mr_loader_stats(mr_loader* loader, char** json, mr_error** error) {
  if (const auto status = millrace::check_process(*loader); !status.ok()) {
    return millrace::tell(status, error);
  }
  const millrace::Json document = millrace::stats_document(loader->loader->stats());
  return millrace::give_text(
      document.dump(-1, ' ', false, millrace::Json::error_handler_t::replace), json, error);
}

int mr_loader_digest(mr_loader* loader, char** digest, mr_error** error) {
  if (const auto status = millrace::check_process(*loader); !status.ok()) {
    return millrace::tell(status, error);
  }
  return millrace::give_text(loader->loader->digest().text(), digest, error);
}

int mr_digest_add(const char* a, const char* b, char** sum, mr_error** error) {
  auto first = millrace::DeliveryDigest::parse(a);
  if (!first) return millrace::tell(first.error(), error);
  const auto second = millrace::DeliveryDigest::parse(b);
  if (!second) return millrace::tell(second.error(), error);
  first->add(*second);
  return millrace::give_text(first->text(), sum, error);
}

}  // extern "C"
