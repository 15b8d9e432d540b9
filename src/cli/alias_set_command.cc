#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"

namespace millrace::cli {
namespace {

struct AliasSetOptions {
  std::string alias;
  std::string target;
  std::string condition;
};

// A version of the alias's dataset, written alone ("v2") or in full ("imagenet@v2").
Result<VersionName> target_version(const AliasRef& alias, const std::string& text) {
  if (!text.contains('@')) return VersionName::parse(text);
  MR_ASSIGN_OR_RETURN(VersionRef ref, VersionRef::parse(text));
  if (ref.dataset == alias.dataset) return std::move(ref.version);
  return failure(
      StatusCode::kInvalidArgument,
      fmt::format("{} cannot point to {}: an alias points to versions of its own dataset",
                  alias.text(), text));
}

Result<AliasCondition> condition_of(const AliasRef& alias, const std::string& text) {
  if (text.empty()) return AliasCondition::any();
  if (text == "none") return AliasCondition::absent();
  auto version = target_version(alias, text);
  if (!version) return failure(version.error().with_context("--if"));
  return AliasCondition::points_to(std::move(*version));
}

Result<int> set_alias(Session& session, const AliasSetOptions& options) {
  MR_ASSIGN_OR_RETURN(const AliasRef alias, AliasRef::parse(options.alias));
  MR_ASSIGN_OR_RETURN(const VersionName target, target_version(alias, options.target));
  MR_ASSIGN_OR_RETURN(const AliasCondition condition, condition_of(alias, options.condition));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  MR_ASSIGN_OR_RETURN(const AliasEntry entry,
                      open.registry.aliases().set(session.request(), alias.dataset, alias.alias,
                                                  target, condition));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(alias_document(entry)));
  } else {
    session.note(fmt::format("{} -> {} (before: {})", alias.text(), target.text(),
                             entry.previous ? entry.previous->text() : "nothing"));
  }
  return 0;
}

}  // namespace

void register_alias_set(CommandLine& line, CLI::App& alias) {
  auto options = std::make_shared<AliasSetOptions>();
  CLI::App* const command = alias.add_subcommand("set", "Let an alias point to a version");
  command->add_option("alias", options->alias, "DATASET@ALIAS, such as imagenet@current")
      ->type_name("ALIAS")
      ->required();
  command->add_option("version", options->target, "The version that it is to point to")
      ->type_name("VERSION")
      ->required();
  command
      ->add_option("--if", options->condition,
                   "Only when it points to this version now; 'none': only when there is no such "
                   "alias")
      ->type_name("VERSION");
  line.runs(command, changing_registry(
                         [options](Session& session) { return set_alias(session, *options); }));
}

}  // namespace millrace::cli
