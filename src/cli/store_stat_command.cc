#include <memory>

#include <fmt/format.h>

#include "app/times.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> stat_object(Session& session, const std::string& url) {
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(url));
  if (location.is_root()) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("{} is a whole store: name an object in it, as in {}",
                               location.to_string(), location.child("name").to_string()));
  }
  MR_ASSIGN_OR_RETURN(const auto store, session.store(location.store));
  MR_ASSIGN_OR_RETURN(const ObjectInfo info, store->head(session.request(), location.object_key()));
  Output& output = session.output();
  if (output.json()) {
    MR_RETURN_IF_ERROR(output.document({{"url", location.to_string()},
                                        {"key", info.key.value()},
                                        {"size", info.size},
                                        {"identity", info.identity.value()},
                                        {"modified", format_time(info.modified)},
                                        {"metadata", Json(info.metadata)}}));
    return 0;
  }
  MR_RETURN_IF_ERROR(output.line(fmt::format("url:      {}", location.to_string())));
  MR_RETURN_IF_ERROR(
      output.line(fmt::format("size:     {} ({} bytes)", format_size(info.size), info.size)));
  MR_RETURN_IF_ERROR(output.line(fmt::format("identity: {}", info.identity.value())));
  MR_RETURN_IF_ERROR(output.line(fmt::format("modified: {}", format_time(info.modified))));
  for (const auto& [name, value] : info.metadata) {
    MR_RETURN_IF_ERROR(output.line(fmt::format("metadata: {}={}", name, value)));
  }
  return 0;
}

}  // namespace

void register_store_stat(CommandLine& line, CLI::App& store) {
  auto url = std::make_shared<std::string>();
  CLI::App* const command =
      store.add_subcommand("stat", "Show size, identity, time and metadata of an object");
  command->add_option("url", *url, "The object: a URL, or a path inside --store")
      ->type_name("URL")
      ->required();
  line.runs(command, [url](Session& session) { return stat_object(session, *url); });
}

}  // namespace millrace::cli
