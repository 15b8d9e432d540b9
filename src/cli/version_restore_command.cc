#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

Result<int> restore_version(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(text));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const VersionEntry restored, open.registry.restore(session.request(), ref));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(version_document(restored)));
  } else {
    session.note(fmt::format("restored {}", ref.text()));
  }
  return 0;
}

}  // namespace

void register_version_restore(CommandLine& line, CLI::App& version) {
  auto ref = std::make_shared<std::string>();
  CLI::App* const command = version.add_subcommand("restore", "Bring a removed version back");
  command->add_option("version", *ref, "DATASET@VERSION")->type_name("REF")->required();
  line.runs(command,
            changing_registry([ref](Session& session) { return restore_version(session, *ref); }));
}

}  // namespace millrace::cli
