#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

Result<int> withdraw_alias(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const AliasRef alias, AliasRef::parse(text));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const AliasEntry entry, open.registry.aliases().withdraw(
                                                  session.request(), alias.dataset, alias.alias));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(alias_document(entry)));
  } else {
    session.note(fmt::format("removed the alias {}", alias.text()));
  }
  return 0;
}

}  // namespace

void register_alias_rm(CommandLine& line, CLI::App& alias) {
  auto ref = std::make_shared<std::string>();
  CLI::App* const command =
      alias.add_subcommand("rm", "Remove an alias and free its name; versions stay as they are");
  command->add_option("alias", *ref, "DATASET@ALIAS, such as imagenet@current")
      ->type_name("ALIAS")
      ->required();
  line.runs(command,
            changing_registry([ref](Session& session) { return withdraw_alias(session, *ref); }));
}

}  // namespace millrace::cli
