#include <memory>

#include "cli/command.h"
#include "cli/publish_session.h"
#include "cli/registry_session.h"
#include "dataset/store_source.h"

namespace millrace::cli {
namespace {

Result<int> promote_staging(Session& session, const PublishFlags& flags) {
  const TimePoint started = session.clock().now();
  MR_ASSIGN_OR_RETURN(const Endpoint endpoint, parse_endpoint(session, flags.source));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<PublishSession> publishing,
                      PublishSession::open(session, flags));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceTree> source, publishing->open_source(endpoint));
  const auto line = session.progress("promoting");
  PublishOptions options{.origin = VersionOrigin::kPromoted,
                         .parallel = flags.parallel,
                         .dry_run = flags.dry_run,
                         .skip_problems = flags.skip_problems,
                         .sample_count = flags.sample_count,
                         .index = flags.index,
                         .progress = publishing->progress(*line)};
  MR_ASSIGN_OR_RETURN(options.annotation, publishing->annotation());
  MR_ASSIGN_OR_RETURN(options.created, publishing->created());
  // Inside one store large files are copied by the store itself.
  const auto* const location = std::get_if<Location>(&endpoint);
  if (location != nullptr && publishing->key_in_store(*location)) {
    options.copied_from = [&staging =
                               static_cast<const StoreSource&>(*source)](const SourceEntry& entry) {
      return ObjectInfo{.key = staging.key_of(entry),
                        .size = entry.size,
                        .identity = ObjectIdentity(entry.token)};
    };
  }
  MR_ASSIGN_OR_RETURN(
      const PublishReport report,
      publish(session.context(), publishing->environment(), *source, publishing->ref(), options));
  line->clear();
  return publishing->report(report, started, "promoted");
}

}  // namespace

void register_promote(CommandLine& line, CLI::App& root) {
  auto flags = std::make_shared<PublishFlags>();
  CLI::App* const command = root.add_subcommand(
      "promote", "Make a version of a staging area; inside one store without moving the bytes");
  add_publish_flags(*command, *flags, "A local directory, a URL, or store:path");
  line.runs(command, changing_registry(
                         [flags](Session& session) { return promote_staging(session, *flags); }));
}

}  // namespace millrace::cli
