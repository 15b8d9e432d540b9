#include "abi/dataset_handle.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "abi/daemon_program.h"
#include "app/environment.h"
#include "base/log.h"
#include "daemon/loader_front_end.h"
#include "frontends/loader/daemon_engine.h"
#include "loader/loader_options.h"

namespace millrace {
namespace {

Result<EngineChoice> parse_engine(const std::string& text) {
  if (text == "auto") return EngineChoice::kAuto;
  if (text == "daemon") return EngineChoice::kDaemon;
  if (text == "process") return EngineChoice::kProcess;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("engine '{}' is neither auto, daemon nor process", text));
}

// Who names a directory without saying so is told how to.
Status with_place_hint(const Status& why, const std::vector<SourceChoice>& sources) {
  if (why.code() != StatusCode::kInvalidArgument && why.code() != StatusCode::kNotFound) return why;
  for (const SourceChoice& source : sources) {
    std::error_code ignored;
    if (names_a_place(source.name) || !std::filesystem::is_directory(source.name, ignored)) {
      continue;
    }
    return {why.code(), fmt::format("{}; for the directory of that name write './{}'",
                                    why.message(), source.name)};
  }
  return why;
}

}  // namespace

Result<LoadedSettings> load_option_settings(const OptionFields::Document* settings) {
  SettingFlags flags;
  if (settings != nullptr) {
    for (const auto& [name, value] : settings->items()) {
      if (!value.is_string()) {
        return failure(StatusCode::kInvalidArgument,
                       fmt::format("options: settings.{} is no text", name));
      }
      if (name == "config") {
        flags.config_file = value.get<std::string>();
      } else {
        flags.values.emplace_back(name, value.get<std::string>());
      }
    }
  }
  for (const auto& [name, text] : flags.values) {
    const auto known = [&](const SettingSpec& spec) { return spec.name == name; };
    if (std::ranges::none_of(all_settings(), known)) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("options: settings.{} is not known", name));
    }
  }
  return load_settings(flags, process_environment());
}

Result<DatasetOptions> parse_dataset_options(std::string_view json) {
  MR_ASSIGN_OR_RETURN(const OptionFields::Document document, parse_options(json));
  OptionFields fields(document, "");
  DatasetOptions options;
  MR_ASSIGN_OR_RETURN(options.job, take_job_choice(fields));
  MR_ASSIGN_OR_RETURN(options.faults.action, parse_fault_action(fields.text("on_error", "raise")));
  options.state = fields.text("state");
  MR_ASSIGN_OR_RETURN(options.engine, parse_engine(fields.text("engine", "auto")));
  options.program = fields.text("program");
  options.run = fields.text("run", process_environment()("MILLRACE_RUN").value_or(""));
  options.job_name = fields.text("job");
  options.timeout = take_seconds(fields, "timeout", 300);
  const OptionFields::Document* const settings = fields.object("settings");
  MR_RETURN_IF_ERROR(fields.finish());
  for (SourceChoice& source : options.job.sources)
    source.name = whole_place(source.name);
  MR_ASSIGN_OR_RETURN(options.settings, load_option_settings(settings));
  return options;
}

DatasetHandle::DatasetHandle(DatasetOptions options)
    : options_(std::move(options)),
      caller_(std::make_shared<const Caller>(
          Caller{.principal = fmt::format("uid:{}", ::getuid()), .run = options_.run})),
      here_(new Here(::getpid())) {}

DatasetHandle::~DatasetHandle() {
  const Here* const last = here_.load();
  // What a parent has is the parent's to take down.
  if (last->pid == ::getpid()) delete last;
}

Result<std::shared_ptr<DatasetHandle>> DatasetHandle::open(
    DatasetOptions options, std::shared_ptr<Cancellation> cancellation) {
  std::shared_ptr<DatasetHandle> handle(new DatasetHandle(std::move(options)));
  const RequestContext context = handle->context(system_clock().now() + handle->options_.timeout)
                                     .with_cancellation(std::move(cancellation));
  auto reached = handle->open_engine(context, false);
  if (!reached) return failure(with_place_hint(reached.error(), handle->options_.job.sources));
  const std::shared_ptr<BatchEngine> engine = *std::move(reached);
  handle->sources_ = engine->sources();
  handle->kind_ = engine->kind();
  MR_ASSIGN_OR_RETURN(handle->job_, LoaderJob::make(handle->options_.job, handle->sources_));
  handle->phases_ = handle->job_->first_state().phases;
  if (!handle->options_.state.empty()) {
    MR_ASSIGN_OR_RETURN(const LoaderState saved, decode_loader_state(handle->options_.state));
    MR_ASSIGN_OR_RETURN(handle->phases_, handle->job_->phases_from(saved));
  }
  Here& here = handle->here();
  MutexLock lock(here.mutex);
  here.engine = engine;
  return handle;
}

DatasetHandle::Here& DatasetHandle::here() {
  Here* current = here_.load();
  const pid_t pid = ::getpid();
  if (current->pid == pid) return *current;
  auto fresh = std::make_unique<Here>(pid);
  if (here_.compare_exchange_strong(current, fresh.get())) return *fresh.release();
  return *current;  // Another thread of this child was faster.
}

Result<std::shared_ptr<BatchEngine>> DatasetHandle::open_engine(const RequestContext& context,
                                                                bool is_child) {
  if (is_child && kind_ == "process") {
    return failure(StatusCode::kUnsupported,
                   "a process that reads by itself cannot share that with those it forks: open the "
                   "dataset with the engine 'daemon', or open it anew in each process");
  }
  if (options_.engine == EngineChoice::kProcess) {
    return open_in_process(context, options_.settings, options_.job.sources);
  }
  std::vector<SourceChoice> choices = options_.job.sources;
  for (std::size_t n = 0; n < sources_.size(); ++n) {
    // A child means what its parent has open.
    if (!sources_[n].version.empty()) choices[n].name = sources_[n].version;
    choices[n].reader = sources_[n].reader;
    choices[n].content = sources_[n].content_digest;
  }
  const Settings& settings = options_.settings.settings;
  bool reached = false;
  auto engine =
      DaemonEngine::open(context,
                         {.socket = loader_socket(settings.socket),
                          .store = settings.store.to_string(),
                          .run = options_.run,
                          .job = options_.job_name,
                          .start_daemon =
                              [this](const RequestContext& start) {
                                return start_daemon(start, options_.settings, options_.program);
                              }},
                         std::move(choices), reached);
  if (engine) return *std::move(engine);
  if (reached || is_child || options_.engine == EngineChoice::kDaemon ||
      context.cancellation().requested()) {
    return failure(engine.error());
  }
  log_warn("no daemon can be had: this process reads by itself, and shares no cache with others",
           {{"why", engine.error().to_string()}});
  return open_in_process(context, options_.settings, options_.job.sources);
}

Result<std::shared_ptr<BatchEngine>> DatasetHandle::engine(
    std::shared_ptr<Cancellation> cancellation) {
  Here& current = here();
  MutexLock lock(current.mutex);
  if (current.engine != nullptr) return current.engine;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<BatchEngine> engine,
                      open_engine(context(system_clock().now() + options_.timeout)
                                      .with_cancellation(std::move(cancellation)),
                                  true));
  current.engine = engine;
  return engine;
}

Result<std::shared_ptr<const JobEpoch>> DatasetHandle::epoch(std::uint64_t epoch) {
  Here& current = here();
  MutexLock lock(current.mutex);
  if (current.last_epoch == nullptr || current.last_epoch->epoch() != epoch) {
    MR_ASSIGN_OR_RETURN(JobEpoch made, job_->epoch(phases_, epoch));
    current.last_epoch = std::make_shared<const JobEpoch>(std::move(made));
  }
  return current.last_epoch;
}

}  // namespace millrace
