#include <cmath>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "cli/local_file.h"
#include "cli/publish_session.h"
#include "cli/registry_session.h"
#include "cli/registry_view.h"
#include "dataset/registration.h"
#include "dataset/registry_document.h"

namespace millrace::cli {
namespace {

struct ImportOptions {
  std::string file;
  bool register_missing = false;
  bool dry_run = false;
};

// What an import does about one version of the document.
struct ImportStep {
  enum class Action : std::uint8_t {
    kMissing,     // Not in the registry: somebody has to register or publish it.
    kRegistered,  // Was missing, and is a version of what its path holds now.
    kUpdated,     // Notes or sample count are taken over.
    kUnchanged,   // The registry says the same already.
    kSkipped,     // Reserved, removed or purged: what is said about it cannot be changed.
  };
  Action action = Action::kUnchanged;
  AnnotationChange change = {};
  // Names of the fields that are taken over.
  std::vector<std::string> updates = {};
  // Fields that only a new version can change, and how they differ; or the state that hinders.
  std::vector<std::string> remarks = {};
};

std::string_view action_name(ImportStep::Action action) {
  switch (action) {
    case ImportStep::Action::kMissing:
      return "missing";
    case ImportStep::Action::kRegistered:
      return "registered";
    case ImportStep::Action::kUpdated:
      return "updated";
    case ImportStep::Action::kUnchanged:
      return "unchanged";
    case ImportStep::Action::kSkipped:
      break;
  }
  return "skipped";
}

Result<std::string> read_document(Session& session, const std::string& path) {
  auto file = path == "-" ? Result<LocalFileReader>(LocalFileReader::standard_input())
                          : LocalFileReader::open(path);
  if (!file) return failure(std::move(file).error());
  std::string text;
  MR_RETURN_IF_ERROR(file->read_all(session.interrupt().fd(), [&](const Slice& data) -> Status {
    text += data.text();
    if (text.size() <= kRegistryDocumentBytesMax) return {};
    return {StatusCode::kInvalidArgument, fmt::format("{} is larger than 64 MiB", path)};
  }));
  return text;
}

void compare_facts(const DocumentedVersion& wanted, const VersionFacts& facts, ImportStep& step) {
  if (wanted.notes && *wanted.notes != facts.annotation.notes) {
    step.change.notes = wanted.notes;
    step.updates.emplace_back("notes");
  }
  if (wanted.sample_count && wanted.sample_count != facts.sample_count) {
    step.change.sample_count = wanted.sample_count;
    step.updates.emplace_back("sample_count");
  }
  if (wanted.created && date_text(*wanted.created) != date_text(facts.created)) {
    step.remarks.push_back(fmt::format("created stays {}, the file says {}",
                                       date_text(facts.created), date_text(*wanted.created)));
  }
  const double size_gb = static_cast<double>(facts.totals.bytes) / 1e9;
  // People round to whole GB, so only what rounding cannot explain is worth a remark.
  if (wanted.size_gb && std::abs(*wanted.size_gb - size_gb) > 0.5 + 0.01 * size_gb) {
    step.remarks.push_back(fmt::format("size_gb is {}, the file says {}", format_size_gb(size_gb),
                                       format_size_gb(*wanted.size_gb)));
  }
  if (!step.updates.empty()) step.action = ImportStep::Action::kUpdated;
}

Result<ImportStep> plan_step(Session& session, const Registry& registry,
                             const DocumentedVersion& wanted) {
  ImportStep step;
  const auto entry = registry.version(session.request(), wanted.ref);
  if (!entry && entry.error() != StatusCode::kNotFound) return failure(entry.error());
  if (!entry || entry->state() == VersionState::kAborted) {
    step.action = ImportStep::Action::kMissing;
  } else if (!entry->readable()) {
    step.action = ImportStep::Action::kSkipped;
    step.remarks.push_back(fmt::format("it is {}", version_state_name(entry->state())));
  } else {
    compare_facts(wanted, *entry->facts, step);
  }
  return step;
}

// Makes a version of the objects below the path, as 'millrace register' does.
Status register_missing(Session& session, const DocumentedVersion& wanted) {
  PublishFlags flags;
  flags.version = wanted.ref.text();
  flags.notes = wanted.notes.value_or("");
  MR_ASSIGN_OR_RETURN(const Location location, session.locate(wanted.path));
  MR_ASSIGN_OR_RETURN(const auto publishing, PublishSession::open(session, flags));
  MR_ASSIGN_OR_RETURN(const RegistrationPlace place, publishing->registration_place(location));
  const auto progress = session.progress("registering " + wanted.ref.text());
  RegistrationOptions registration{.sample_count = wanted.sample_count,
                                   .created = wanted.created,
                                   .progress = publishing->progress(*progress)};
  MR_ASSIGN_OR_RETURN(registration.annotation, publishing->annotation());
  const auto report = register_version(session.context(), publishing->environment(), place,
                                       publishing->ref(), registration);
  progress->clear();
  return report ? Status() : report.error();
}

// Carries a step out. Fails at the first that cannot be: a second import goes on from there.
Status carry_out(Session& session, const Registry& registry, const DocumentedVersion& wanted,
                 const ImportOptions& options, ImportStep& step) {
  if (options.dry_run) return {};
  if (step.action == ImportStep::Action::kUpdated) {
    const auto changed = registry.annotate(session.request(), wanted.ref, step.change);
    return changed ? Status() : changed.error();
  }
  if (step.action != ImportStep::Action::kMissing || !options.register_missing) return {};
  if (wanted.path.empty()) return {StatusCode::kInvalidArgument, "there is no path to register"};
  MR_RETURN_IF_ERROR(register_missing(session, wanted));
  step.action = ImportStep::Action::kRegistered;
  return {};
}

Status print_step(Output& output, const DocumentedVersion& wanted, const ImportStep& step,
                  bool dry_run) {
  if (output.json()) {
    return output.document({{"ref", wanted.ref.text()},
                            {"line", wanted.line},
                            {"action", action_name(step.action)},
                            {"updates", step.updates},
                            {"remarks", step.remarks},
                            {"path", wanted.path}});
  }
  std::string text = fmt::format("{}: ", wanted.ref.text());
  if (step.action == ImportStep::Action::kUpdated) {
    text +=
        fmt::format("{} {}", dry_run ? "would update" : "updated", fmt::join(step.updates, ", "));
  } else if (step.action == ImportStep::Action::kMissing) {
    text += wanted.path.empty() ? "not in the registry, and the file gives no path to register"
                                : fmt::format("not in the registry: millrace register {} {}",
                                              wanted.path, wanted.ref.text());
  } else {
    text += action_name(step.action);
  }
  for (const std::string& remark : step.remarks)
    text += "; " + remark;
  return output.line(text);
}

Result<int> import_registry(Session& session, const ImportOptions& options) {
  MR_ASSIGN_OR_RETURN(const std::string text, read_document(session, options.file));
  // All of it is read and judged before anything is changed.
  MR_ASSIGN_OR_RETURN(const auto versions, parse_registry_document(text, options.file));
  MR_ASSIGN_OR_RETURN(const OpenRegistry open, open_registry(session));
  std::uint64_t missing = 0;
  for (const DocumentedVersion& wanted : versions) {
    MR_ASSIGN_OR_RETURN(ImportStep step, plan_step(session, open.registry, wanted));
    const Status done =
        carry_out(session, open.registry, wanted, options, step)
            .with_context(fmt::format("{}:{}: {}", options.file, wanted.line, wanted.ref.text()));
    MR_RETURN_IF_ERROR(done);
    if (step.action == ImportStep::Action::kMissing) ++missing;
    MR_RETURN_IF_ERROR(print_step(session.output(), wanted, step, options.dry_run));
  }
  if (missing > 0) {
    session.note(
        fmt::format("{} not in the registry: add --register to make versions of what their paths "
                    "hold",
                    count_text(missing, "version is", "versions are")));
  }
  return 0;
}

}  // namespace

void register_registry_import(CommandLine& line, CLI::App& registry) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* const command = registry.add_subcommand(
      "import", "Take notes and sample counts from YAML, and list the versions that are missing");
  command->add_option("file", options->file, "The YAML file; '-' for standard input")
      ->type_name("FILE")
      ->required();
  command->add_flag("--register", options->register_missing,
                    "Register the missing ones: lists all objects below their paths, copies none");
  command->add_flag("-n,--dry-run", options->dry_run, "Change nothing, only say what would be");
  line.runs(command, changing_registry([options](Session& session) {
              return import_registry(session, *options);
            }));
}

}  // namespace millrace::cli
