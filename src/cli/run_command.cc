#include <cctype>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/units.h"
#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/run_heartbeat.h"
#include "cli/run_process.h"

namespace millrace::cli {
namespace {

constexpr std::string_view kRunExample =
    "millrace run --name exp42 --use imagenet@v2 -- python train.py";
constexpr int kExitNotStarted = 127;

struct RunOptions {
  std::string name;
  std::vector<std::string> uses;
  std::string heartbeat = format_duration(kHeartbeatPeriodDefault);
  std::vector<std::string> command;
};

// "MILLRACE_USE_INTERNAL_USER_LOGS" for "internal/user-logs".
std::string use_variable(const DatasetName& dataset) {
  std::string name = "MILLRACE_USE_";
  for (const char c : dataset.text()) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 ? static_cast<char>(std::toupper(byte)) : '_';
  }
  return name;
}

// What the command finds in its environment. Versions whose datasets lead to one name stand there
// with blanks between them, which no reference has.
std::map<std::string, std::string> run_variables(const RunRecording& recording) {
  std::map<std::string, std::string> variables = {{"MILLRACE_RUN", recording.id.value()}};
  for (const RunUse& use : recording.description.uses) {
    std::string& value = variables[use_variable(use.ref.dataset)];
    value += (value.empty() ? "" : " ") + use.ref.text();
  }
  return variables;
}

Result<RunDescription> describe_run(Session& session, const Registry& registry,
                                    const RunOptions& options) {
  RunDescription description{.name = options.name, .command_line = options.command};
  if (description.name.empty()) {
    description.name = std::filesystem::path(options.command.front()).filename().string();
  }
  const auto period = parse_duration(options.heartbeat);
  if (!period) return failure(period.error().with_context("--heartbeat"));
  description.heartbeat_period = *period;
  for (const std::string& text : options.uses) {
    MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(text));
    MR_ASSIGN_OR_RETURN(const VersionEntry entry, registry.resolve(session.request(), ref));
    description.uses.push_back({.ref = entry.ref, .content_digest = entry.facts->content_digest});
  }
  description.git_commit = working_directory_commit();
  return description;
}

// A version may have been removed while the start was recorded: from then on it cannot be purged.
Status check_uses(Session& session, const Registry& registry, const RunDescription& description) {
  for (const RunUse& use : description.uses) {
    const auto entry = registry.resolve(session.request(), use.ref);
    if (!entry) return entry.error();
  }
  return {};
}

// What the daemon of this machine, if one runs, saw of the run: a list of its answer to a question.
Json observed_rows(Session& session, const RequestContext& context, const std::string& question,
                   const RunId& id, const std::string& list) {
  const auto answer = ControlClient(session).send(
      context, HttpMethod::kGet, question + "run=" + ControlClient::component(id.value()));
  return answer ? answer->value(list, Json::array()) : Json::array();
}

RunObservation observe_run(Session& session, const RequestContext& context, const RunId& id) {
  RunObservation observed;
  // A daemon of another store has seen versions of the same names that are not this run's.
  if (!check_daemon_settings(session, context).ok()) return observed;
  for (const Json& row : observed_rows(session, context, "/v1/usage?by=version&", id, "usage")) {
    observed.reads.push_back({.version = text_cell(row, "version"),
                              .read_bytes = number_of(row, "read_bytes"),
                              .reads = number_of(row, "reads"),
                              .fetches = number_of(row, "fetches"),
                              .fetched_bytes = number_of(row, "fetched_bytes"),
                              .handed_out_files = number_of(row, "handed_out_files")});
  }
  for (const Json& row : observed_rows(session, context, "/v1/failures?", id, "failures")) {
    observed.failures.push_back({.dataset = text_cell(row, "dataset"),
                                 .sample = number_of(row, "sample"),
                                 .key = row.value("key", ""),
                                 .action = text_cell(row, "action"),
                                 .error = text_cell(row, "error"),
                                 .times = number_of(row, "times")});
  }
  return observed;
}

// Not the context of the command: that is cancelled when the run was interrupted.
Status record_end(Session& session, const Registry& registry, RunRecording& recording, int code) {
  const RequestContext context(session.clock().now() + session.settings().timeout, "cli");
  if (recording.recorded) recording.observed = observe_run(session, context, recording.id);
  return registry.runs().finish(context, recording, static_cast<std::uint64_t>(code));
}

Result<int> supervise(Session& session, const Registry& registry, RunRecording& recording) {
  auto process = RunProcess::start(recording.description.command_line, run_variables(recording));
  if (!process) {
    const Status recorded = record_end(session, registry, recording, kExitNotStarted);
    if (!recorded.ok()) session.note(recorded.message());
    return failure(std::move(process).error());
  }
  RunHeartbeat heartbeat(session.clock(), registry.runs(), recording, session.settings().timeout);
  const int code = process->wait(session.interrupt());
  Status recorded = heartbeat.stop();
  if (!recorded.ok()) session.note("the last heartbeat failed: " + recorded.message());
  recorded = record_end(session, registry, recording, code);
  // The command is what counts: its code stays what it is.
  if (!recorded.ok()) session.note("the end of the run is not recorded: " + recorded.message());
  return code;
}

Result<int> run_recorded(Session& session, const RunOptions& options) {
  if (options.command.empty()) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("what to run comes after '--', as in '{}'; 'millrace run ls' and "
                               "'millrace run show' look at earlier runs",
                               kRunExample));
  }
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(RunDescription description, describe_run(session, open.registry, options));
  MR_ASSIGN_OR_RETURN(RunRecording recording,
                      open.registry.runs().start(session.request(), std::move(description)));
  if (!recording.warning.ok()) session.note("warning: " + recording.warning.message());
  const Status usable = check_uses(session, open.registry, recording.description);
  if (!usable.ok()) {
    MR_RETURN_IF_ERROR(record_end(session, open.registry, recording, kExitNotStarted));
    return failure(usable);
  }
  if (recording.recorded) session.note(fmt::format("run {} started", recording.id.value()));
  MR_ASSIGN_OR_RETURN(const int code, supervise(session, open.registry, recording));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document({{"run", recording.id.value()},
                                                  {"name", recording.description.name},
                                                  {"recorded", recording.recorded},
                                                  {"warning", recording.warning.message()},
                                                  {"exit_code", code}}));
  }
  return code;
}

// 'run --name x ls' runs nothing, although it looks as if it did.
Result<int> refuse_mixed(const std::string& subcommand) {
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'millrace run {}' takes none of the flags of a run; to run a program "
                             "of that name, put '--' before it",
                             subcommand));
}

}  // namespace

void register_run(CommandLine& line, CLI::App& root) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* const command = root.add_subcommand(
      "run", "Run a command and record which versions it uses; ls, show: earlier runs");
  CLI::Option* const name = command->add_option(
      "--name", options->name, "What to call the run; without it, the name of the program");
  name->type_name("NAME");
  CLI::Option* const uses = command->add_option(
      "--use", options->uses, "DATASET@VERSION or DATASET@ALIAS that it reads; repeat for more");
  uses->type_name("REF")->allow_extra_args(false);
  command->add_option("--heartbeat", options->heartbeat, "How often to record that it is alive")
      ->type_name("DURATION")
      ->default_str(options->heartbeat);
  command->add_option("command", options->command, "The program and its arguments, after '--'")
      ->type_name("COMMAND");
  command->require_subcommand(0, 1);
  // Not CommandLine::runs(): the callback of a command comes after that of its subcommand.
  command->callback([&line, command, options, name, uses] {
    const auto below = command->get_subcommands();
    if (below.empty()) {
      line.chosen = [options](Session& session) { return run_recorded(session, *options); };
    } else if (name->count() + uses->count() > 0 || !options->command.empty()) {
      line.chosen = [word = below.front()->get_name()](Session&) { return refuse_mixed(word); };
    }
  });
}

}  // namespace millrace::cli
