#include "dataset/registration.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "dataset/manifest_cursor.h"
#include "dataset/manifest_store.h"
#include "dataset/registration_sink.h"
#include "dataset/sample_indexing.h"
#include "dataset/sample_name.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

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
                  const RegistrationPlace& place, const VersionRef& ref,
                  const RegistrationOptions& options)
      : context_(context),
        environment_(environment),
        place_(place),
        ref_(ref),
        options_(options),
        store_(place.store != nullptr ? *place.store : environment.store),
        source_(store_, place.prefix, {.threads = options.parallel}, environment.clock),
        prefix_(source_.key_of({}).value()),
        scratch_(environment.state_directory + "/scratch"),
        path_(fmt::format("{}/{}.manifest", scratch_, environment.random.token())) {
    // Who hashes a shard has read it, and so its samples.
    if (options.hash && options.index && !options.dry_run) {
      shards_ = std::make_unique<SampleShards>(ref.text(), scratch_);
    }
  }
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
    // Before the name is taken: a prefix with a slip of the pen leaves nothing behind.
    MR_RETURN_IF_ERROR(check_not_empty());
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
  Status nothing_there() const {
    return {StatusCode::kNotFound, fmt::format("there is no object below {}", source_.describe())};
  }

  Status check_not_empty() {
    const auto page = store_.list(request(), {.prefix = prefix_, .entries_max = 1});
    if (!page) return page.error().with_context(source_.describe());
    return page->objects.empty() ? nothing_there() : Status();
  }

  Status build() {
    MR_ASSIGN_OR_RETURN(const std::unique_ptr<ManifestBuilder> builder,
                        ManifestBuilder::create({.path = path_,
                                                 .scratch = scratch_,
                                                 .prefix = prefix_,
                                                 .prefix_store = place_.store_url}));
    ReservedKeys reserved(environment_.registry);
    RegistrationSink sink(context_, {.source = source_,
                                     .builder = *builder,
                                     .store_url = place_.store_url,
                                     .reserved = place_.store == nullptr ? &reserved : nullptr,
                                     .shards = shards_.get(),
                                     .clock = environment_.clock,
                                     .options = options_});
    MR_RETURN_IF_ERROR(source_.scan(context_, sink));
    MR_RETURN_IF_ERROR(sink.wait());
    report_.problems = sink.problems().count();
    report_.first_problems = sink.problems().first();
    if (!options_.skip_problems && !options_.dry_run) {
      MR_RETURN_IF_ERROR(sink.problems().refuse(source_.describe()));
    }
    MR_ASSIGN_OR_RETURN(summary_, builder->finish());
    report_.files = summary_.totals.files;
    report_.bytes = summary_.totals.logical_bytes;
    report_.objects = summary_.totals.files;
    return {};
  }

  StoreResolver stores() const {
    // All objects are in one store. Owns nothing: it outlives the registration.
    return [this](const std::string& /*url*/) -> Result<std::shared_ptr<ObjectStore>> {
      return std::shared_ptr<ObjectStore>(std::shared_ptr<void>(), &store_);
    };
  }

  Result<std::optional<std::uint64_t>> find_sample_count() {
    if (options_.index) {
      MR_ASSIGN_OR_RETURN(report_.indexed_samples,
                          index_samples(context_, environment_,
                                        {.manifest_path = path_,
                                         .ref = ref_,
                                         .stores = stores(),
                                         .shards = shards_.get(),
                                         .parallel = options_.parallel,
                                         .request_timeout = options_.request_timeout}));
      return report_.indexed_samples;
    }
    if (options_.sample_count) return options_.sample_count;
    MR_ASSIGN_OR_RETURN(const std::uint64_t counted, count_samples(path_));
    return counted > 0 ? std::optional(counted) : std::nullopt;
  }

  Status commit(const Reservation& reservation) {
    if (report_.files == 0) return nothing_there();
    MR_ASSIGN_OR_RETURN(const std::optional<std::uint64_t> sample_count, find_sample_count());
    ManifestStore manifests(environment_.store, environment_.state_directory + "/manifests");
    MR_ASSIGN_OR_RETURN(VersionLayout layout,
                        manifests.put(context_, path_, ref_, reservation.nonce));
    VersionFacts facts =
        new_version_facts({.origin = VersionOrigin::kRegistered,
                           .sample_count = sample_count,
                           .created = options_.created.value_or(environment_.clock.wall_now()),
                           .annotation = options_.annotation,
                           .source = source_.describe()},
                          summary_, std::move(layout));
    MR_ASSIGN_OR_RETURN(report_.entry,
                        environment_.registry.commit(request(), reservation, std::move(facts)));
    return {};
  }

  const RequestContext& context_;
  const PublishEnvironment& environment_;
  const RegistrationPlace& place_;
  const VersionRef& ref_;
  const RegistrationOptions& options_;
  ObjectStore& store_;
  StoreSource source_;
  const std::string prefix_;
  const std::string scratch_;
  const std::string path_;
  std::unique_ptr<SampleShards> shards_;
  ManifestSummary summary_;
  PublishReport report_;
};

}  // namespace

Result<PublishReport> register_version(const RequestContext& context,
                                       const PublishEnvironment& environment,
                                       const RegistrationPlace& place, const VersionRef& ref,
                                       const RegistrationOptions& options) {
  return RegistrationRun(context, environment, place, ref, options).run();
}

}  // namespace millrace
