#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/times.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

struct RunLsOptions {
  std::size_t runs_max = 20;
  bool all = false;
};

std::vector<std::string> run_row(const RunEntry& run, WallTime now) {
  std::vector<std::string> refs;
  for (const RunUse& use : run.description.uses)
    refs.push_back(use.ref.text());
  return {run.id.value(),
          run.description.name,
          std::string(run_state(run, now)),
          run.exit_code ? std::to_string(*run.exit_code) : "-",
          format_time(run.started),
          who_text(run.who),
          refs.empty() ? "-" : fmt::format("{}", fmt::join(refs, ", "))};
}

Result<int> list_runs(Session& session, const RunLsOptions& options) {
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const auto ids, open.registry.runs().ids(session.request()));
  const std::size_t shown = options.all ? ids.size() : std::min(ids.size(), options.runs_max);
  std::vector<std::vector<std::string>> rows = {
      {"RUN", "NAME", "STATE", "EXIT", "STARTED", "WHO", "USES"}};
  Status damage;
  const WallTime now = session.clock().wall_now();
  for (std::size_t i = 0; i < shown; ++i) {
    const auto run = open.registry.runs().run(session.request(), ids[i]);
    if (!run) {
      // One record that is damaged, or not written yet, does not hide the others.
      const StatusCode code = run.error().code();
      if (code == StatusCode::kNotFound) continue;
      if (code != StatusCode::kCorruption) return failure(run.error());
      if (damage.ok()) damage = run.error();
    } else if (session.output().json()) {
      MR_RETURN_IF_ERROR(session.output().document(run_document(*run, now)));
    } else {
      rows.push_back(run_row(*run, now));
    }
  }
  if (rows.size() > 1) MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  MR_RETURN_IF_ERROR(damage);
  if (shown < ids.size()) {
    session.note(fmt::format("{} earlier: -n N shows more, --all all of them",
                             count_text(ids.size() - shown, "run is", "runs are")));
  }
  return 0;
}

}  // namespace

void register_run_ls(CommandLine& line, CLI::App& run) {
  auto options = std::make_shared<RunLsOptions>();
  CLI::App* const command = run.add_subcommand("ls", "List runs, newest first");
  command->add_option("-n", options->runs_max, "At most so many")
      ->type_name("N")
      ->default_str("20");
  command->add_flag("-a,--all", options->all, "All of them");
  line.runs(command, [options](Session& session) { return list_runs(session, *options); });
}

}  // namespace millrace::cli
