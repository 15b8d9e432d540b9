#include <memory>

#include "cli/command.h"
#include "cli/publish_session.h"
#include "cli/registry_session.h"
#include "dataset/registration.h"

namespace millrace::cli {
namespace {

struct RegisterCommandOptions {
  PublishFlags flags;
  bool hash = false;
};

Result<int> register_objects(Session& session, const RegisterCommandOptions& options) {
  const TimePoint started = session.clock().now();
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(options.flags.source));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<PublishSession> publishing,
                      PublishSession::open(session, options.flags));
  MR_ASSIGN_OR_RETURN(const RegistrationPlace place, publishing->registration_place(location));
  const auto line = session.progress("registering");
  RegistrationOptions registration{.hash = options.hash,
                                   .parallel = options.flags.parallel,
                                   .dry_run = options.flags.dry_run,
                                   .skip_problems = options.flags.skip_problems,
                                   .sample_count = options.flags.sample_count,
                                   .index = options.flags.index,
                                   .progress = publishing->progress(*line)};
  MR_ASSIGN_OR_RETURN(registration.annotation, publishing->annotation());
  MR_ASSIGN_OR_RETURN(registration.created, publishing->created());
  MR_ASSIGN_OR_RETURN(const PublishReport report,
                      register_version(session.context(), publishing->environment(), place,
                                       publishing->ref(), registration));
  line->clear();
  return publishing->report(report, started, "registered");
}

}  // namespace

void register_register(CommandLine& line, CLI::App& root) {
  auto options = std::make_shared<RegisterCommandOptions>();
  options->flags.parallel = 16;
  CLI::App* const command =
      root.add_subcommand("register", "Make a version of objects where they are, without a copy");
  add_publish_flags(*command, options->flags,
                    "A prefix in this store, store:path, or in another, a URL");
  command->add_flag("--hash", options->hash,
                    "Read every object, so that every later read is verified");
  line.runs(command, changing_registry([options](Session& session) {
              return register_objects(session, *options);
            }));
}

}  // namespace millrace::cli
