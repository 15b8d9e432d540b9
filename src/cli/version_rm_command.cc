#include <memory>

#include <fmt/format.h>

#include "app/times.h"
#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "cli/version_rm_options.h"

namespace millrace::cli {
namespace {

struct VersionRmOptions {
  std::string ref;
  RemovalOptions removal;
  bool abort = false;
  bool force = false;
};

// kConflict when an alias leads here: everybody who follows it would find nothing.
Status check_no_alias(Session& session, const Registry& registry, const VersionRef& ref) {
  MR_ASSIGN_OR_RETURN(const auto aliases, registry.aliases().list(session.request(), ref.dataset));
  for (const AliasEntry& alias : aliases) {
    if (alias.target != ref.version) continue;
    const std::string name = fmt::format("{}@{}", ref.dataset.text(), alias.alias.text());
    return {StatusCode::kConflict,
            fmt::format("the alias {} points to {}: move it first ('millrace alias set {} "
                        "VERSION'), or add --force",
                        name, ref.text(), name)};
  }
  return {};
}

Result<int> abort_reservation(Session& session, const Registry& registry, const VersionRef& ref,
                              const RemovalOptions& options) {
  MR_ASSIGN_OR_RETURN(const VersionEntry entry, registry.version(session.request(), ref));
  if (entry.state() != VersionState::kReserved) {
    return failure(StatusCode::kConflict,
                   fmt::format("{} is {}, not reserved: there is nothing to abort", ref.text(),
                               version_state_name(entry.state())));
  }
  const std::string holder =
      fmt::format("{} ({}, since {})", ref.text(), entry.who.describe(), format_time(entry.since));
  if (!options.yes && Session::can_ask() &&
      !session.confirm(fmt::format("End the reservation of {}?", holder))) {
    return failure(StatusCode::kCancelled, "nothing was aborted");
  }
  const std::string reason = options.reason.empty() ? "version rm --abort" : options.reason;
  MR_RETURN_IF_ERROR(registry.abort(session.request(), Reservation::of(entry), reason));
  if (session.output().json()) {
    MR_ASSIGN_OR_RETURN(const VersionEntry aborted, registry.version(session.request(), ref));
    MR_RETURN_IF_ERROR(session.output().document(version_document(aborted)));
  } else {
    session.note(fmt::format("ended the reservation of {}: the name is free", holder));
  }
  return 0;
}

Result<int> remove_version(Session& session, const VersionRmOptions& options) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(options.ref));
  MR_ASSIGN_OR_RETURN(const Duration retention, retention_of(options.removal));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  if (options.abort) return abort_reservation(session, open.registry, ref, options.removal);
  // Before anything is asked: aliases are not followed here, since who removes must say what.
  MR_ASSIGN_OR_RETURN(const VersionEntry entry, open.registry.version(session.request(), ref));
  if (entry.state() == VersionState::kReserved) return failure(check_reservable(entry));
  if (!options.force) MR_RETURN_IF_ERROR(check_no_alias(session, open.registry, ref));
  if (!options.removal.yes && Session::can_ask() &&
      !session.confirm(fmt::format("Remove {}?", ref.text()))) {
    return failure(StatusCode::kCancelled, "nothing was removed");
  }
  MR_ASSIGN_OR_RETURN(
      const VersionEntry removed,
      open.registry.remove(session.request(), ref, options.removal.reason, retention));
  MR_RETURN_IF_ERROR(report_removed(session, removed));
  return 0;
}

}  // namespace

void register_version_rm(CommandLine& line, CLI::App& version) {
  auto options = std::make_shared<VersionRmOptions>();
  CLI::App* const command = version.add_subcommand(
      "rm", "Remove a version, restorable for a while; or end a dead reservation");
  command->add_option("version", options->ref, "DATASET@VERSION")->type_name("REF")->required();
  add_removal_options(*command, options->removal);
  command->add_flag("--force", options->force, "Even when an alias points to it");
  command->add_flag("--abort", options->abort,
                    "End the reservation of a publish that is dead, so that the name is free");
  line.runs(command, changing_registry([options](Session& session) {
              return remove_version(session, *options);
            }));
}

}  // namespace millrace::cli
