#include "cli/version_rm_options.h"

#include <fmt/format.h>

#include "app/times.h"
#include "cli/registry_view.h"

namespace millrace::cli {

void add_removal_options(CLI::App& command, RemovalOptions& options) {
  command
      .add_option("--retention", options.retention,
                  "How long it stays restorable at least, such as 30d or 12h")
      ->type_name("DURATION")
      ->default_str(options.retention);
  command.add_option("--reason", options.reason, "Why, for those who look for it later")
      ->type_name("TEXT");
  command.add_flag("-y,--yes", options.yes, "Do not ask");
}

Result<Duration> retention_of(const RemovalOptions& options) {
  auto retention = parse_duration(options.retention);
  if (!retention) return failure(retention.error().with_context("--retention"));
  return retention;
}

Status report_removed(Session& session, const VersionEntry& removed) {
  if (session.output().json()) return session.output().document(version_document(removed));
  session.note(fmt::format("removed {}; until {} 'millrace version restore {}' brings it back",
                           removed.ref.text(), format_time(removed.removal->restorable_until()),
                           removed.ref.text()));
  return {};
}

}  // namespace millrace::cli
