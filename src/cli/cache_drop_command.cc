#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"
#include "dataset/version_ref.h"

namespace millrace::cli {
namespace {

Result<int> drop_cached_version(Session& session, const std::string& text) {
  MR_ASSIGN_OR_RETURN(const VersionRef ref, VersionRef::parse(text));
  const std::string path =
      fmt::format("/v1/cache/versions/{}/{}", ControlClient::component(ref.dataset.text()),
                  ControlClient::component(ref.version.text()));
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(const Json dropped,
                      ControlClient(session).send(session.context(), HttpMethod::kDelete, path));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(dropped));
    return 0;
  }
  std::string note = fmt::format("dropped {} of {}", size_cell(dropped, "dropped_bytes"), text);
  if (const std::uint64_t busy = number_of(dropped, "busy_objects"); busy > 0) {
    note += fmt::format("; {} being fetched just now, or leased by a preload of another version",
                        count_text(busy, "object stays, which is", "objects stay, which are"));
  }
  session.note(note);
  return 0;
}

}  // namespace

void register_cache_drop(CommandLine& line, CLI::App& cache) {
  auto version = std::make_shared<std::string>();
  CLI::App* const command =
      cache.add_subcommand("drop", "Take a version out of the cache, unless it is leased");
  command->add_option("version", *version, "DATASET@VERSION or DATASET@ALIAS")
      ->type_name("REF")
      ->required();
  line.runs(command,
            [version](Session& session) { return drop_cached_version(session, *version); });
}

}  // namespace millrace::cli
