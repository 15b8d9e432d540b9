#include "cli/publish_session.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/random.h"
#include "base/time_format.h"
#include "base/units.h"
#include "cli/other_stores.h"
#include "dataset/directory_source.h"
#include "dataset/reserved_keys.h"
#include "dataset/store_source.h"
#include "objectstore/capability_probe.h"

namespace millrace::cli {
namespace {

Status check_can_create(Session& session, ObjectStore& store) {
  MR_ASSIGN_OR_RETURN(const CapabilityReport capabilities,
                      probe_capabilities(session.request(), store, std::string(kProbeFolder)));
  if (capabilities.honours(Capability::kCreateIfAbsent)) return {};
  return {
      StatusCode::kUnsupported,
      fmt::format("{} does not honour create-if-absent, without which two writers at once would "
                  "overwrite each other; if nobody else publishes to it, say "
                  "--unsafe-single-writer",
                  store.describe())};
}

std::string counted(std::uint64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string digits(ByteView digest) { return to_hex(digest.first(8)); }

}  // namespace

void add_publish_flags(CLI::App& command, PublishFlags& flags, const std::string& source_help) {
  command.add_option("source", flags.source, source_help)->type_name("SOURCE")->required();
  command.add_option("version", flags.version, "The version to make: NAME@VERSION")
      ->type_name("NAME@VERSION")
      ->required();
  command.add_option("--notes", flags.notes, "A sentence about it, for people")->type_name("TEXT");
  command.add_option("--label", flags.labels, "A label; may be given more than once")
      ->type_name("NAME=VALUE");
  CLI::Option* const count =
      command.add_option("--sample-count", flags.sample_count,
                         "How many samples it has; counted by file names when not given");
  count->type_name("COUNT");
  command
      .add_flag("--index", flags.index,
                "Find the samples in its tar files, and store where they are, for loaders")
      ->excludes(count);
  command
      .add_option("--created", flags.created, "When its content was made, as 2026-01-15; else now")
      ->type_name("DATE");
  command.add_flag("--dry-run", flags.dry_run, "Only say what would be done");
  command.add_flag("--skip-problems", flags.skip_problems,
                   "Leave out what cannot be part of a version, instead of giving up");
  command.add_flag("--unsafe-single-writer", flags.unsafe_single_writer,
                   "For stores without create-if-absent, when nobody else publishes to them");
  command.add_option("-j,--parallel", flags.parallel, "Objects stored at one time")
      ->type_name("COUNT")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
}

PublishSession::PublishSession(Session& session, const PublishFlags& flags, VersionRef ref,
                               std::shared_ptr<ObjectStore> store, BufferPool& buffers)
    : session_(session),
      flags_(flags),
      ref_(std::move(ref)),
      store_(std::move(store)),
      registry_({.store = *store_,
                 .clock = session.clock(),
                 .random = system_random(),
                 .writer = this_process_writer(),
                 .single_writer = flags.unsafe_single_writer}),
      environment_{.store = *store_,
                   .registry = registry_,
                   .buffers = buffers,
                   .clock = session.clock(),
                   .random = system_random(),
                   .state_directory = session.settings().cache,
                   .stores = other_stores(session)} {}

Result<std::unique_ptr<PublishSession>> PublishSession::open(Session& session,
                                                             const PublishFlags& flags) {
  MR_ASSIGN_OR_RETURN(VersionRef ref, VersionRef::parse(flags.version));
  MR_ASSIGN_OR_RETURN(Application* const application, session.application());
  MR_ASSIGN_OR_RETURN(std::shared_ptr<ObjectStore> store,
                      session.store(session.settings().store, Session::Access::kWrite));
  if (!flags.dry_run && !flags.unsafe_single_writer) {
    MR_RETURN_IF_ERROR(check_can_create(session, *store));
  }
  return std::unique_ptr<PublishSession>(
      new PublishSession(session, flags, std::move(ref), std::move(store), application->buffers()));
}

std::optional<std::string> PublishSession::key_in_store(const Location& location) const {
  const StoreUrl& ours = session_.settings().store;
  if (location.store.without_prefix() != ours.without_prefix()) return std::nullopt;
  std::string key = location.key;
  if (!location.store.prefix.empty()) key = location.store.prefix + "/" + key;
  if (ours.prefix.empty()) return key;
  if (!key.starts_with(ours.prefix + "/")) return std::nullopt;
  return key.substr(ours.prefix.size() + 1);
}

Result<RegistrationPlace> PublishSession::registration_place(const Location& location) {
  if (const std::optional<std::string> key = key_in_store(location)) {
    return RegistrationPlace{.prefix = *key};
  }
  MR_ASSIGN_OR_RETURN(const StoreUrl url, registrable_store(session_, location));
  MR_ASSIGN_OR_RETURN(source_store_, session_.store(url));
  std::string prefix = location.key;
  if (!location.store.prefix.empty()) prefix = location.store.prefix + "/" + prefix;
  return RegistrationPlace{
      .prefix = std::move(prefix), .store = source_store_.get(), .store_url = url.to_string()};
}

Result<std::unique_ptr<SourceTree>> PublishSession::open_source(const Endpoint& source) {
  if (const auto* const local = std::get_if<LocalPath>(&source)) {
    return DirectorySource::open_root(local->path);
  }
  const auto* const location = std::get_if<Location>(&source);
  if (location == nullptr) {
    return failure(StatusCode::kInvalidArgument,
                   "a stream cannot be published: name a directory or a URL");
  }
  if (const std::optional<std::string> key = key_in_store(*location)) {
    return std::make_unique<StoreSource>(*store_, *key);
  }
  MR_ASSIGN_OR_RETURN(source_store_, session_.store(location->store));
  return std::make_unique<StoreSource>(*source_store_, location->key);
}

Result<VersionAnnotation> PublishSession::annotation() const {
  VersionAnnotation annotation{.notes = flags_.notes};
  for (const std::string& label : flags_.labels) {
    const std::size_t equals = label.find('=');
    if (equals == std::string::npos || equals == 0) {
      return failure(StatusCode::kInvalidArgument,
                     fmt::format("--label {}: write it as NAME=VALUE", label));
    }
    annotation.labels[label.substr(0, equals)] = label.substr(equals + 1);
  }
  MR_RETURN_IF_ERROR(check_annotation(annotation));
  return annotation;
}

Result<std::optional<WallTime>> PublishSession::created() const {
  if (flags_.created.empty()) return std::nullopt;
  const std::string text =
      flags_.created.contains('T') ? flags_.created : flags_.created + "T00:00:00Z";
  const Result<WallTime> time = parse_iso8601(text);
  if (time) return *time;
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("--created {}: write it as 2026-01-15", flags_.created));
}

PublishProgress PublishSession::progress(Progress& line) const {
  return {.scanned = [&line](std::uint64_t files) { line.add_objects(files); },
          .planned = [&line](std::uint64_t bytes) { line.add_total(bytes); },
          .stored = [&line](std::uint64_t bytes) { line.add_bytes(bytes); }};
}

Result<int> PublishSession::report(const PublishReport& report, TimePoint started,
                                   std::string_view done) const {
  const Duration took = session_.clock().now() - started;
  const std::uint64_t sent_bytes = report.stored_bytes - report.resumed_bytes;
  if (session_.output().json()) {
    Json document{{"version", ref_.text()},
                  {"dry_run", flags_.dry_run},
                  {"files", report.files},
                  {"bytes", report.bytes},
                  {"packs", report.packs},
                  {"objects", report.objects},
                  {"stored_bytes", report.stored_bytes},
                  {"resumed_bytes", report.resumed_bytes},
                  {"reused_files", report.reused_files},
                  {"reused_bytes", report.reused_bytes},
                  {"problems", report.problems},
                  {"seconds", std::chrono::duration<double>(took).count()}};
    if (report.indexed_samples) document["indexed_samples"] = *report.indexed_samples;
    if (report.base) document["base"] = report.base->text();
    if (report.entry) document["content_digest"] = to_hex(report.entry->facts->content_digest);
    MR_RETURN_IF_ERROR(session_.output().document(document));
    return 0;
  }
  for (const SourceProblem& problem : report.first_problems)
    session_.note(fmt::format("left out: '{}' {}", problem.path, problem.reason));
  if (report.problems > report.first_problems.size()) {
    session_.note(fmt::format("left out: {} more", report.problems - report.first_problems.size()));
  }
  std::string text =
      fmt::format("{}{} {}: {}, {}", flags_.dry_run ? "dry run, nothing was " : "", done,
                  ref_.text(), counted(report.files, "file"), format_size(report.bytes));
  if (report.stored_bytes > 0 || report.reused_files > 0) {
    text +=
        fmt::format("; {} {}", flags_.dry_run ? "to store:" : "stored", format_size(sent_bytes));
    if (report.packs > 0) text += fmt::format(" in {}", counted(report.packs, "pack"));
    if (report.packs > 0 && report.objects > 0) text += " and";
    if (report.objects > 0) text += fmt::format(" {}", counted(report.objects, "object"));
  }
  if (report.reused_files > 0) {
    text +=
        fmt::format(", {} shared with {}", format_size(report.reused_bytes), report.base->text());
  }
  if (report.resumed_bytes > 0) {
    text += fmt::format(", {} stored before", format_size(report.resumed_bytes));
  }
  if (report.indexed_samples) {
    text += fmt::format(", {} indexed", counted(*report.indexed_samples, "sample"));
  }
  if (report.entry) {
    text += fmt::format("; content {}, in {}", digits(report.entry->facts->content_digest),
                        format_duration(std::chrono::ceil<std::chrono::milliseconds>(took)));
  }
  session_.note(text);
  return 0;
}

}  // namespace millrace::cli
