#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> verify_cache(Session& session, const std::string& version) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  const Json body = version.empty() ? Json::object() : Json{{"version", version}};
  MR_ASSIGN_OR_RETURN(
      const Json report,
      ControlClient(session).send(session.context(), HttpMethod::kPost, "/v1/cache/verify", body));
  if (session.output().json()) MR_RETURN_IF_ERROR(session.output().document(report));
  if (const std::uint64_t bad = number_of(report, "bad_units"); bad > 0) {
    return failure(StatusCode::kCorruption,
                   fmt::format("{} of 64 KiB failed the checksum; they are forgotten, and will be "
                               "fetched again when they are read",
                               bad == 1 ? "1 unit" : std::to_string(bad) + " units"));
  }
  session.note(fmt::format("{} in {} objects are as they were fetched", size_cell(report, "bytes"),
                           count_cell(report, "objects")));
  return 0;
}

}  // namespace

void register_cache_verify(CommandLine& line, CLI::App& cache) {
  auto version = std::make_shared<std::string>();
  CLI::App* const command =
      cache.add_subcommand("verify", "Hold what is cached against its checksums");
  command->add_option("version", *version, "DATASET@VERSION or DATASET@ALIAS; without it, all")
      ->type_name("REF");
  line.runs(command, [version](Session& session) { return verify_cache(session, *version); });
}

}  // namespace millrace::cli
