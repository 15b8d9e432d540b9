#include "dataset/registration.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/log.h"
#include "base/task_group.h"
#include "cache/unit.h"
#include "dataset/manifest_builder.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_store.h"
#include "dataset/sample_name.h"
#include "dataset/store_source.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::size_t kListedProblems = 10;
constexpr std::uint64_t kHashReadBytes = 4 * kMiB;
static_assert(kHashReadBytes % kUnitBytes == 0, "checksums are of whole units");

// Takes the objects of the scan into a manifest.
class RegistrationSink final : public SourceSink {
 public:
  RegistrationSink(const RequestContext& context, StoreSource& source, ManifestBuilder& builder,
                   Clock& clock, const RegistrationOptions& options)
      : source_(source),
        builder_(builder),
        clock_(clock),
        options_(options),
        hashing_(context, options.parallel) {}

  Status take(std::span<SourceEntry> entries) override {
    for (SourceEntry& entry : entries) {
      if (entry.kind == EntryKind::kFile && options_.hash && entry.size > 0) {
        // One thread at a time may add to a group.
        MutexLock lock(group_mutex_);
        MR_RETURN_IF_ERROR(hashing_.add(
            [this, entry](const RequestContext& part) { return add_hashed(part, entry); }));
      } else {
        MR_RETURN_IF_ERROR(add_pinned(entry));
      }
    }
    options_.progress.scanned(entries.size());
    return {};
  }

  Status report(SourceProblem problem) override {
    MutexLock lock(problems_mutex_);
    if (++problems_ <= kListedProblems) first_problems_.push_back(std::move(problem));
    return {};
  }

  // After the scan.
  Status wait() { return hashing_.wait(); }
  std::uint64_t problems() {
    MutexLock lock(problems_mutex_);
    return problems_;
  }
  std::vector<SourceProblem> first_problems() {
    MutexLock lock(problems_mutex_);
    return first_problems_;
  }

 private:
  static NewEntry entry_of(const SourceEntry& entry) {
    return {.path = entry.path,
            .kind = entry.kind,
            .mode = entry.mode,
            .mtime_ns = entry.mtime_ns,
            .size = entry.kind == EntryKind::kFile ? entry.size : 0};
  }

  Status add_pinned(const SourceEntry& source) {
    NewEntry entry = entry_of(source);
    MutexLock lock(mutex_);
    if (entry.kind == EntryKind::kFile) {
      const ObjectIdentity identity(source.token);
      entry.hash = ContentHash::of_identity(identity);
      if (entry.size > 0) {
        std::uint32_t object = kOwnObject;
        if (entry.hash.kind != HashKind::kEtag) {
          MR_ASSIGN_OR_RETURN(object, builder_.add_object({.key = source_.key_of(source),
                                                           .identity = identity,
                                                           .size = source.size,
                                                           .foreign = true}));
        }
        entry.extents = {
            {.object = object, .stored_bytes = source.size, .logical_bytes = source.size}};
      }
    }
    return builder_.add(entry);
  }

  Status add_hashed(const RequestContext& context, const SourceEntry& source) {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceFile> file, source_.open(context, source));
    options_.progress.planned(source.size);
    Sha256 sha;
    std::vector<std::uint32_t> checksums;
    std::vector<std::byte> buffer(std::min(kHashReadBytes, source.size));
    for (std::uint64_t at = 0; at < source.size; at += buffer.size()) {
      const MutableByteView part =
          MutableByteView(buffer).first(std::min<std::uint64_t>(buffer.size(), source.size - at));
      const RequestContext request = context.with_deadline(clock_.now() + options_.request_timeout);
      MR_ASSIGN_OR_RETURN(const std::size_t size, file->read_at(request, at, part));
      if (size != part.size()) return source_changed(source.path, "it became shorter");
      sha.add(part);
      for (std::size_t unit = 0; unit < part.size(); unit += kUnitBytes)
        checksums.push_back(crc32c(part.subspan(unit, std::min(kUnitBytes, part.size() - unit))));
      options_.progress.stored(part.size());
    }
    NewEntry entry = entry_of(source);
    entry.hash = ContentHash::of_content(sha.finish());
    MutexLock lock(mutex_);
    MR_ASSIGN_OR_RETURN(const std::uint32_t object,
                        builder_.add_object({.key = source_.key_of(source),
                                             .identity = ObjectIdentity(source.token),
                                             .size = source.size,
                                             .foreign = true,
                                             .checksums = checksums}));
    entry.extents = {{.object = object, .stored_bytes = source.size, .logical_bytes = source.size}};
    return builder_.add(entry);
  }

  StoreSource& source_;
  Mutex mutex_;  // Over the builder.
  ManifestBuilder& builder_ MR_GUARDED_BY(mutex_);
  Clock& clock_;
  const RegistrationOptions& options_;
  Mutex problems_mutex_;
  std::uint64_t problems_ MR_GUARDED_BY(problems_mutex_) = 0;
  std::vector<SourceProblem> first_problems_ MR_GUARDED_BY(problems_mutex_);
  Mutex group_mutex_;
  TaskGroup hashing_;  // Last: its tasks use the members above.
};

Status check_problems(const PublishReport& report, const StoreSource& source) {
  std::string message =
      fmt::format("{} keys of {} cannot be part of a version:", report.problems, source.describe());
  for (const SourceProblem& problem : report.first_problems)
    message += fmt::format("\n  '{}' {}", problem.path, problem.reason);
  if (report.problems > report.first_problems.size()) message += "\n  ...";
  message += "\nRemove them, or leave them out with --skip-problems";
  return {StatusCode::kInvalidArgument, std::move(message)};
}

Result<std::uint64_t> count_samples(const std::string& manifest_path) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Manifest> manifest, Manifest::open(manifest_path));
  ManifestCursor cursor(*manifest);
  SampleCounter samples;
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::optional<ManifestCursor::Item> item, cursor.next());
    if (!item) return samples.count();
    if (item->entry.kind() == EntryKind::kFile) samples.add(item->path);
  }
}

// One registration; its reservation is given up when anything fails.
class RegistrationRun {
 public:
  RegistrationRun(const RequestContext& context, const PublishEnvironment& environment,
                  const std::string& prefix, const VersionRef& ref,
                  const RegistrationOptions& options)
      : context_(context),
        environment_(environment),
        ref_(ref),
        options_(options),
        source_(environment.store, prefix, {.threads = options.parallel}, environment.clock),
        prefix_(source_.key_of({}).value()),
        scratch_(environment.state_directory + "/scratch"),
        path_(fmt::format("{}/{}.manifest", scratch_, environment.random.token())) {}
  ~RegistrationRun() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  RegistrationRun(const RegistrationRun&) = delete;
  RegistrationRun& operator=(const RegistrationRun&) = delete;

  Result<PublishReport> run() {
    std::error_code error;
    std::filesystem::create_directories(scratch_, error);
    if (error) return failure(file_error(error.value(), "make directory", scratch_));
    if (options_.dry_run) {
      MR_RETURN_IF_ERROR(build());
      return std::move(report_);
    }
    MR_ASSIGN_OR_RETURN(
        const Reservation reservation,
        environment_.registry.reserve(
            request(), ref_, {.reason = fmt::format("register of {}", source_.describe())}));
    Status status = build();
    if (status.ok()) status = commit(reservation);
    if (status.ok()) return std::move(report_);
    const Status aborted =
        environment_.registry.abort(request(), reservation, status.to_string().substr(0, 200));
    if (!aborted.ok()) {
      log_warn("a reservation is left behind", {{"error", aborted.to_string()}});
    }
    return failure(std::move(status));
  }

 private:
  RequestContext request() const {
    return context_.with_deadline(environment_.clock.now() + options_.request_timeout);
  }

  Status build() {
    MR_ASSIGN_OR_RETURN(
        const std::unique_ptr<ManifestBuilder> builder,
        ManifestBuilder::create({.path = path_, .scratch = scratch_, .prefix = prefix_}));
    RegistrationSink sink(context_, source_, *builder, environment_.clock, options_);
    MR_RETURN_IF_ERROR(source_.scan(context_, sink));
    MR_RETURN_IF_ERROR(sink.wait());
    report_.problems = sink.problems();
    report_.first_problems = sink.first_problems();
    if (report_.problems > 0 && !options_.skip_problems && !options_.dry_run) {
      return check_problems(report_, source_);
    }
    MR_ASSIGN_OR_RETURN(summary_, builder->finish());
    report_.files = summary_.totals.files;
    report_.bytes = summary_.totals.logical_bytes;
    report_.objects = summary_.totals.files;
    return {};
  }

  Status commit(const Reservation& reservation) {
    if (report_.files == 0) {
      return {StatusCode::kNotFound,
              fmt::format("there is no object below {}", source_.describe())};
    }
    std::optional<std::uint64_t> sample_count = options_.sample_count;
    if (!sample_count) {
      MR_ASSIGN_OR_RETURN(const std::uint64_t counted, count_samples(path_));
      if (counted > 0) sample_count = counted;
    }
    ManifestStore manifests(environment_.store, environment_.state_directory + "/manifests");
    MR_ASSIGN_OR_RETURN(VersionLayout layout, manifests.put(context_, path_));
    VersionFacts facts{.origin = VersionOrigin::kRegistered,
                       .content_digest = summary_.content_digest,
                       .layout = std::move(layout),
                       .totals = {.files = summary_.totals.files,
                                  .directories = summary_.totals.directories,
                                  .symlinks = summary_.totals.symlinks,
                                  .bytes = summary_.totals.logical_bytes},
                       .sample_count = sample_count,
                       .created = options_.created.value_or(environment_.clock.wall_now()),
                       .annotation = options_.annotation,
                       .source = source_.describe()};
    MR_ASSIGN_OR_RETURN(report_.entry,
                        environment_.registry.commit(request(), reservation, std::move(facts)));
    return {};
  }

  const RequestContext& context_;
  const PublishEnvironment& environment_;
  const VersionRef& ref_;
  const RegistrationOptions& options_;
  StoreSource source_;
  const std::string prefix_;
  const std::string scratch_;
  const std::string path_;
  ManifestSummary summary_;
  PublishReport report_;
};

}  // namespace

Result<PublishReport> register_version(const RequestContext& context,
                                       const PublishEnvironment& environment,
                                       const std::string& prefix, const VersionRef& ref,
                                       const RegistrationOptions& options) {
  return RegistrationRun(context, environment, prefix, ref, options).run();
}

}  // namespace millrace
