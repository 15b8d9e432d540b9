#include <memory>

#include <fmt/format.h>

#include "cli/command.h"
#include "cli/publish_session.h"
#include "cli/registry_session.h"

namespace millrace::cli {
namespace {

struct PublishCommandOptions {
  PublishFlags flags;
  std::string base;
  bool without_base = false;
  bool rehash = false;
};

Result<int> publish_files(Session& session, const PublishCommandOptions& options) {
  const TimePoint started = session.clock().now();
  MR_ASSIGN_OR_RETURN(const Endpoint endpoint, parse_endpoint(session, options.flags.source));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<PublishSession> publishing,
                      PublishSession::open(session, options.flags));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceTree> source, publishing->open_source(endpoint));
  const auto line = session.progress("publishing");
  PublishOptions publish_options{.parallel = options.flags.parallel,
                                 .without_base = options.without_base,
                                 .rehash = options.rehash,
                                 .dry_run = options.flags.dry_run,
                                 .skip_problems = options.flags.skip_problems,
                                 .sample_count = options.flags.sample_count,
                                 .index = options.flags.index,
                                 .progress = publishing->progress(*line)};
  MR_ASSIGN_OR_RETURN(publish_options.annotation, publishing->annotation());
  MR_ASSIGN_OR_RETURN(publish_options.created, publishing->created());
  if (!options.base.empty()) {
    MR_ASSIGN_OR_RETURN(publish_options.base, VersionName::parse(options.base));
  }
  MR_ASSIGN_OR_RETURN(const PublishReport report,
                      publish(session.context(), publishing->environment(), *source,
                              publishing->ref(), publish_options));
  line->clear();
  return publishing->report(report, started, "published");
}

}  // namespace

void register_publish(CommandLine& line, CLI::App& root) {
  auto options = std::make_shared<PublishCommandOptions>();
  options->flags.parallel = publish_parallel();
  CLI::App* const command =
      root.add_subcommand("publish", "Make a version of a directory, or of what lies below a URL");
  add_publish_flags(*command, options->flags, "A local directory, a URL, or store:path");
  command
      ->add_option("--base", options->base,
                   "The version of the same dataset to share content with; else the latest one")
      ->type_name("VERSION");
  command->add_flag("--no-base", options->without_base, "Share nothing: store every file");
  command->add_flag("--rehash", options->rehash,
                    "Read every file, also those that did not change since the last publish");
  line.runs(command, changing_registry(
                         [options](Session& session) { return publish_files(session, *options); }));
}

}  // namespace millrace::cli
