#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

Result<int> roll_back_alias(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const AliasRef alias, AliasRef::parse(text));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const AliasEntry entry, open.registry.aliases().rollback(
                                                  session.request(), alias.dataset, alias.alias));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(alias_document(entry)));
  } else {
    session.note(fmt::format("{} -> {} (before: {})", alias.text(),
                             entry.target ? entry.target->text() : "nothing",
                             entry.previous ? entry.previous->text() : "nothing"));
  }
  return 0;
}

}  // namespace

void register_alias_rollback(CommandLine& line, CLI::App& alias) {
  auto ref = std::make_shared<std::string>();
  CLI::App* const command = alias.add_subcommand(
      "rollback", "Let an alias point to what it pointed to before; repeated, further back");
  command->add_option("alias", *ref, "DATASET@ALIAS, such as imagenet@current")
      ->type_name("ALIAS")
      ->required();
  line.runs(command,
            changing_registry([ref](Session& session) { return roll_back_alias(session, *ref); }));
}

}  // namespace millrace::cli
