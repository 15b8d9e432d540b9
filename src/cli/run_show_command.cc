#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/times.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "dataset/log_record_fields.h"

namespace millrace::cli {
namespace {

Result<int> show_run(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const RunId id, parse_run_id(text));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const RunEntry run, open.registry.runs().run(session.request(), id));
  const WallTime now = session.clock().wall_now();
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(run_document(run, now)));
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"run:", run.id.value()},
                                                {"name:", run.description.name},
                                                {"state:", std::string(run_state(run, now))},
                                                {"who:", run.who.describe()},
                                                {"started:", format_time(run.started)},
                                                {"heartbeat:", format_time(run.heartbeat)}};
  if (run.ended) rows.push_back({"ended:", format_time(*run.ended)});
  if (run.exit_code) rows.push_back({"exit code:", std::to_string(*run.exit_code)});
  if (!run.description.git_commit.empty()) {
    rows.push_back({"git commit:", run.description.git_commit});
  }
  rows.push_back({"command:", fmt::format("{}", fmt::join(run.description.command_line, " "))});
  for (const RunUse& use : run.description.uses) {
    rows.push_back({"uses:", fmt::format("{} (content {})", use.ref.text(),
                                         record_digest(use.content_digest))});
  }
  for (const RunRead& read : run.observed.reads) {
    rows.push_back({"read:", fmt::format("{} of {} in {} reads, {} of it from the store in {} "
                                         "requests; {} whole files were handed out",
                                         format_size(read.read_bytes), read.version, read.reads,
                                         format_size(read.fetched_bytes), read.fetches,
                                         read.handed_out_files)});
  }
  for (const RunFailure& failed : run.observed.failures) {
    rows.push_back(
        {"failed:", fmt::format("sample {} of {}{}, {} times ({}): {}", failed.sample,
                                failed.dataset, failed.key.empty() ? "" : " '" + failed.key + "'",
                                failed.times, failed.action, failed.error)});
  }
  MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  return 0;
}

}  // namespace

void register_run_show(CommandLine& line, CLI::App& run) {
  auto id = std::make_shared<std::string>();
  CLI::App* const command = run.add_subcommand("show", "Show one run");
  command->add_option("run", *id, "Its id, as 'millrace run ls' shows it")
      ->type_name("RUN")
      ->required();
  line.runs(command, [id](Session& session) { return show_run(session, *id); });
}

}  // namespace millrace::cli
