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

struct VersionShowOptions {
  std::string ref;
  std::size_t runs_max = 20;
};

// A version with what points to it.
struct VersionView {
  VersionEntry entry;
  std::vector<std::string> aliases = {};
  std::uint64_t runs_total = 0;
  // The newest ones.
  std::vector<RunEntry> runs = {};
};

Result<VersionView> view_version(Session& session, const Registry& registry, VersionEntry entry,
                                 std::size_t runs_max) {
  VersionView view{.entry = std::move(entry)};
  MR_ASSIGN_OR_RETURN(const auto aliases,
                      registry.aliases().list(session.request(), view.entry.ref.dataset));
  for (const AliasEntry& alias : aliases) {
    if (alias.target == view.entry.ref.version) view.aliases.push_back(alias.alias.text());
  }
  if (!view.entry.facts) return view;
  MR_ASSIGN_OR_RETURN(const auto ids,
                      registry.runs().users(session.request(), view.entry.facts->content_digest));
  view.runs_total = ids.size();
  for (const RunId& id : ids) {
    if (view.runs.size() == runs_max) break;
    MR_ASSIGN_OR_RETURN(RunEntry run, registry.runs().run(session.request(), id));
    view.runs.push_back(std::move(run));
  }
  return view;
}

Status print_view_document(Session& session, const VersionView& view) {
  Json document = version_document(view.entry);
  document["aliases"] = view.aliases;
  document["runs_total"] = view.runs_total;
  document["runs"] = Json::array();
  for (const RunEntry& run : view.runs)
    document["runs"].push_back(run_document(run, session.clock().wall_now()));
  return session.output().document(document);
}

std::vector<std::vector<std::string>> fact_rows(const VersionFacts& facts) {
  std::vector<std::vector<std::string>> rows = {
      {"created:", format_time(facts.created)},
      {"published:",
       fmt::format("{} by {}", format_time(facts.published), facts.publisher.describe())},
      {"origin:", facts.source.empty()
                      ? std::string(version_origin_name(facts.origin))
                      : fmt::format("{} from {}", version_origin_name(facts.origin), facts.source)},
      {"size:", fmt::format("{} ({} bytes)", format_size(facts.totals.bytes), facts.totals.bytes)},
      {"holds:", fmt::format("{}, {}, {}", count_text(facts.totals.files, "file", "files"),
                             count_text(facts.totals.directories, "directory", "directories"),
                             count_text(facts.totals.symlinks, "symlink", "symlinks"))}};
  if (facts.sample_count) rows.push_back({"samples:", std::to_string(*facts.sample_count)});
  rows.push_back({"stored:", fmt::format("{} of objects, {} of manifest",
                                         format_size(facts.layout.stored_bytes),
                                         format_size(facts.layout.manifest_bytes))});
  rows.push_back({"content:", record_digest(facts.content_digest)});
  rows.push_back({"layout:", record_digest(facts.layout.layout_digest)});
  if (facts.repacked) rows.push_back({"repacked:", format_time(facts.repacked->since)});
  for (const VersionRef& parent : facts.layout.parents)
    rows.push_back({"shares with:", parent.text()});
  for (const auto& [name, value] : facts.annotation.labels)
    rows.push_back({"label:", fmt::format("{}={}", name, value)});
  std::string_view notes = facts.annotation.notes;
  for (std::string_view head = "notes:"; !notes.empty(); head = "") {
    const std::size_t end = notes.find('\n');
    rows.push_back({std::string(head), std::string(notes.substr(0, end))});
    notes = end == std::string_view::npos ? "" : notes.substr(end + 1);
  }
  return rows;
}

Status print_runs(Session& session, const VersionView& view) {
  if (view.runs_total == 0) return {};
  MR_RETURN_IF_ERROR(session.output().line(""));
  std::vector<std::vector<std::string>> rows = {{"RUN", "NAME", "STATE", "EXIT", "WHO", "USED AS"}};
  for (const RunEntry& run : view.runs) {
    std::vector<std::string> refs;
    for (const RunUse& use : run.description.uses) {
      if (use.content_digest == view.entry.facts->content_digest) refs.push_back(use.ref.text());
    }
    rows.push_back({run.id.value(), run.description.name,
                    std::string(run_state(run, session.clock().wall_now())),
                    run.exit_code ? std::to_string(*run.exit_code) : "-", who_text(run.who),
                    fmt::format("{}", fmt::join(refs, ", "))});
  }
  MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  if (view.runs_total == view.runs.size()) return {};
  return session.output().line(
      fmt::format("... and {} earlier: --runs N shows more", view.runs_total - view.runs.size()));
}

Result<int> show_version(Session& session, const VersionShowOptions& options) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(options.ref));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(VersionEntry entry, find_version(session, open.registry, ref));
  MR_ASSIGN_OR_RETURN(const VersionView view,
                      view_version(session, open.registry, std::move(entry), options.runs_max));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(print_view_document(session, view));
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {
      {"version:", view.entry.ref.text()},
      {"state:", fmt::format("{} since {} by {}", version_state_name(view.entry.state()),
                             format_time(view.entry.since), view.entry.who.describe())}};
  if (!view.entry.reason.empty()) rows.push_back({"reason:", view.entry.reason});
  if (view.entry.removal && view.entry.state() == VersionState::kRemoved) {
    rows.push_back(
        {"restorable:",
         fmt::format("until {} at least", format_time(view.entry.removal->restorable_until()))});
  }
  if (!view.aliases.empty()) {
    rows.push_back({"aliases:", fmt::format("{}", fmt::join(view.aliases, ", "))});
  }
  if (view.entry.facts) {
    for (auto& row : fact_rows(*view.entry.facts))
      rows.push_back(std::move(row));
  }
  MR_RETURN_IF_ERROR(print_table(session.output(), rows));
  MR_RETURN_IF_ERROR(print_runs(session, view));
  return 0;
}

}  // namespace

void register_version_show(CommandLine& line, CLI::App& version) {
  auto options = std::make_shared<VersionShowOptions>();
  CLI::App* const command = version.add_subcommand(
      "show", "Show a version: sizes, digests, labels, aliases, and the runs that used it");
  command->add_option("version", options->ref, "DATASET@VERSION, or DATASET@ALIAS")
      ->type_name("REF")
      ->required();
  command->add_option("--runs", options->runs_max, "Show at most so many runs, newest first")
      ->type_name("N")
      ->default_str("20");
  line.runs(command, [options](Session& session) { return show_version(session, *options); });
}

}  // namespace millrace::cli
