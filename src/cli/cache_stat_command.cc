#include "cli/command.h"
#include "cli/control_client.h"
#include "cli/daemon_settings.h"
#include "cli/document_cells.h"
#include "cli/registry_view.h"
#include "cli/session.h"

namespace millrace::cli {
namespace {

Result<int> show_cache(Session& session) {
  MR_RETURN_IF_ERROR(check_daemon_settings(session, session.request()));
  MR_ASSIGN_OR_RETURN(const Json cache, ControlClient(session).get("/v1/cache"));
  if (session.output().json()) {
    MR_RETURN_IF_ERROR(session.output().document(cache));
    return 0;
  }
  const std::string counting = cache.value("counted", true) ? "" : " (still counting)";
  MR_RETURN_IF_ERROR(print_table(session.output(),
                                 {{"directory:", text_cell(cache, "directory")},
                                  {"used:", size_cell(cache, "used_bytes") + counting},
                                  {"limit:", size_cell(cache, "limit_bytes")},
                                  {"leased:", size_cell(cache, "leased_bytes")},
                                  {"encrypted:", cache.value("encrypted", false) ? "yes" : "no"}}));
  return 0;
}

}  // namespace

void register_cache_stat(CommandLine& line, CLI::App& cache) {
  CLI::App* const command = cache.add_subcommand("stat", "How full the cache is");
  line.runs(command, show_cache);
}

}  // namespace millrace::cli
