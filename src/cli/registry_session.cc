#include "cli/registry_session.h"

#include <fmt/format.h>

#include "base/random.h"
#include "cli/control_client.h"

namespace millrace::cli {
namespace {

constexpr Duration kTellDaemonTimeout = std::chrono::seconds(3);

}  // namespace

Result<OpenRegistry> open_registry(Session& session) {
  MR_ASSIGN_OR_RETURN(auto store, session.store(session.settings().store));
  Registry registry({.store = *store,
                     .clock = session.clock(),
                     .random = system_random(),
                     .writer = this_process_writer()});
  return OpenRegistry{.store = std::move(store), .registry = std::move(registry)};
}

CommandBody changing_registry(CommandBody body) {
  return [body = std::move(body)](Session& session) -> Result<int> {
    Result<int> done = body(session);
    // Without a daemon there is nobody to tell, and one that does not answer finds out by itself.
    const RequestContext context =
        session.context().with_deadline(session.clock().now() + kTellDaemonTimeout);
    (void)ControlClient(session).send(context, HttpMethod::kPost, "/v1/datasets/ask_again");
    return done;
  };
}

Result<VersionEntry> find_version(Session& session, const Registry& registry,
                                  const VersionRef& ref) {
  auto direct = registry.version(session.request(), ref);
  if (direct && direct->state() != VersionState::kAborted) return direct;
  if (!direct && direct.error() != StatusCode::kNotFound) return direct;
  MR_ASSIGN_OR_RETURN(const AliasName name, AliasName::parse(ref.version.text()));
  const auto alias = registry.aliases().get(session.request(), ref.dataset, name);
  if (!alias && alias.error() != StatusCode::kNotFound) return failure(alias.error());
  // The message about a version that is not there is the better one: it names both.
  if (!alias || !alias->target) return direct;
  return registry.version(session.request(), {ref.dataset, *alias->target});
}

Result<AliasRef> AliasRef::parse(std::string_view text) {
  const std::size_t at = text.find('@');
  MR_ASSIGN_OR_RETURN(DatasetName dataset, DatasetName::parse(text.substr(0, at)));
  if (at == std::string_view::npos || at + 1 == text.size()) {
    return failure(StatusCode::kInvalidArgument, fmt::format("'{}' names no alias: write {}@ALIAS",
                                                             dataset.text(), dataset.text()));
  }
  MR_ASSIGN_OR_RETURN(AliasName alias, AliasName::parse(text.substr(at + 1)));
  return AliasRef{std::move(dataset), std::move(alias)};
}

}  // namespace millrace::cli
