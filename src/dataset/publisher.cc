#include "dataset/publisher.h"

#include <algorithm>
#include <filesystem>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/task_group.h"
#include "dataset/known_files.h"
#include "dataset/manifest_store.h"
#include "dataset/publish_base.h"
#include "dataset/publish_entries.h"
#include "dataset/publish_facts.h"
#include "dataset/publish_manifest.h"
#include "dataset/publish_scan.h"
#include "dataset/publish_uploads.h"
#include "dataset/sample_indexing.h"
#include "dataset/sample_name.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

// How many files are hashed side by side before they are planned, in order.
constexpr std::size_t kHashBatch = 1024;
constexpr std::uint64_t kHashChunkBytes = kMiB;
// A store may lose an object once; one that goes on losing them, or somebody who writes there, ends
// the publish.
constexpr int kAttemptsMax = 3;
constexpr std::size_t kLifeDigits = 8;

std::string short_name(std::string_view text) {
  return to_hex(ByteView(sha256(as_bytes(text))).first(16));
}

Result<Sha256Digest> hash_file(const RequestContext& context, SourceTree& source,
                               const SourceEntry& entry) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceFile> file, source.open(context, entry));
  Sha256 sha;
  std::vector<std::byte> buffer(std::min(kHashChunkBytes, std::max<std::uint64_t>(entry.size, 1)));
  for (std::uint64_t at = 0; at < entry.size; at += buffer.size()) {
    const MutableByteView part =
        MutableByteView(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.size - at));
    MR_ASSIGN_OR_RETURN(const std::size_t size, file->read_at(context, at, part));
    if (size != part.size()) return failure(source_changed(entry.path, "it became shorter"));
    sha.add(part);
  }
  MR_ASSIGN_OR_RETURN(const bool unchanged, file->unchanged(context));
  if (!unchanged) return failure(source_changed(entry.path, "while it was read"));
  return sha.finish();
}

// One publish, from its scan to its commit.
class Publication final : public PackPlanSink {
 public:
  Publication(const RequestContext& context, const PublishEnvironment& environment,
              SourceTree& source, const VersionRef& ref, const PublishOptions& options)
      : context_(context),
        environment_(environment),
        source_(source),
        ref_(ref),
        options_(options),
        scratch_(environment.state_directory + "/scratch"),
        scan_(scratch_, options_.progress),
        entries_(scratch_),
        object_paths_(scratch_),
        planner_(options.packs, *this) {}

  Result<PublishReport> run() {
    if (const Status status = make(); !status.ok()) return failure(explain(status));
    return std::move(report_);
  }
  // After run() has failed: whether it was for objects that the store does not have as they were
  // stored. Another publication stores just them, under the same reservation.
  bool can_be_mended() const { return missed_objects_ && held_; }

 private:
  // A file whose hash may be worth knowing before it is planned.
  struct Candidate {
    SourceEntry entry = {};
    std::optional<ManifestEntry> same_path = {};
    std::optional<Sha256Digest> hash = {};
  };

  Status make() {
    MR_RETURN_IF_ERROR(make_directories());
    MR_RETURN_IF_ERROR(scan());
    options_.reached(PublishPoint::kScanned);
    if (!options_.dry_run) MR_RETURN_IF_ERROR(reserve());
    MR_RETURN_IF_ERROR(open_base());
    options_.reached(PublishPoint::kBaseOpened);
    MR_RETURN_IF_ERROR(plan());
    options_.reached(PublishPoint::kAllStored);
    if (options_.dry_run) return {};
    return own_commit_ ? recognise() : commit();
  }

  RequestContext request() const {
    return context_.with_deadline(environment_.clock.now() + options_.request_timeout);
  }
  std::string known_path() const {
    return fmt::format("{}/known/{}", environment_.state_directory, short_name(source_.describe()));
  }

  Status explain(const Status& status);
  Status make_directories();
  Status scan();
  Status reserve();
  void start_uploads(std::string prefix);
  Status open_base();
  Status choose_base();
  Status plan();
  Status plan_batch(std::vector<Candidate>& batch);
  Status hash_batch(std::vector<Candidate>& batch);
  Status plan_entry(const Candidate& candidate);
  Status commit();
  Status recognise();
  void remove_journal();
  Result<ManifestSummary> write_manifest(const std::string& path);
  Status index(const std::string& manifest_path);
  VersionFacts facts(const ManifestSummary& summary, VersionLayout layout) const;

  Status add_pack(PlannedPack pack) override {
    ++report_.packs;
    report_.stored_bytes += pack.bytes;
    options_.progress.planned(pack.bytes);
    return uploads_ ? uploads_->add_pack(std::move(pack)) : Status();
  }
  Status add_object(SourceEntry file) override {
    ++report_.objects;
    report_.stored_bytes += file.size;
    options_.progress.planned(file.size);
    MR_RETURN_IF_ERROR(object_paths_.add(file.path));
    return uploads_ ? uploads_->add_object(std::move(file)) : Status();
  }

  const RequestContext& context_;
  const PublishEnvironment& environment_;
  SourceTree& source_;
  const VersionRef& ref_;
  const PublishOptions& options_;
  const std::string scratch_;

  PublishScan scan_;
  PublishedEntries entries_;
  SpooledPaths object_paths_;
  PackPlanner planner_;
  std::optional<VersionEntry> base_entry_;
  std::unique_ptr<Manifest> base_manifest_;
  std::unique_ptr<PublishBase> base_;
  std::optional<KnownFilesReader> known_;
  SampleCounter samples_;
  std::unique_ptr<PublishJournal> journal_;
  std::optional<Reservation> reservation_;
  // What an earlier life of this publish has committed, before it was killed.
  std::optional<VersionEntry> own_commit_;
  bool resumed_ = false;
  std::optional<PublishUploads> uploads_;
  bool missed_objects_ = false;
  bool held_ = false;
  PublishReport report_;
};

Status Publication::make_directories() {
  for (const std::string& path : {scratch_, environment_.state_directory + "/publish",
                                  environment_.state_directory + "/known"}) {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) return file_error(error.value(), "make directory", path);
  }
  return {};
}

// Who aborts a reservation deletes what was stored under it, and that is met before the commit is.
Status Publication::explain(const Status& status) {
  // The source is not what was committed, or what it was committed upon is gone.
  const bool differs = status == StatusCode::kPreconditionFailed || status == StatusCode::kNotFound;
  if (own_commit_ && differs) return check_reservable(*own_commit_);
  if (!reservation_) return status;
  const Result<VersionEntry> now = environment_.registry.version(request(), ref_);
  if (!now) return status;
  const Status held = check_held(*reservation_, *now);
  held_ = held.ok();
  return held_ ? status : held;
}

Status Publication::scan() {
  MR_RETURN_IF_ERROR(source_.scan(context_, scan_));
  MR_RETURN_IF_ERROR(scan_.seal());
  report_.problems = scan_.problems().count();
  report_.first_problems = scan_.problems().first();
  if (options_.skip_problems || options_.dry_run) return {};
  return scan_.problems().refuse(source_.describe());
}

Status Publication::reserve() {
  const std::string title = fmt::format("{}\n{}", environment_.store.describe(), ref_.text());
  MR_ASSIGN_OR_RETURN(
      journal_, PublishJournal::open(fmt::format("{}/publish/{}.journal",
                                                 environment_.state_directory, short_name(title)),
                                     title));
  // What was stored under a reservation that ended may be gone: then it begins anew.
  const Result<VersionEntry> state = environment_.registry.version(request(), ref_);
  if (!state && state.error().code() != StatusCode::kNotFound) return state.error();
  const std::string& nonce = journal_->nonce();
  if (state && state->readable() && !nonce.empty() && state->facts->reservation == nonce) {
    own_commit_ = *state;
    start_uploads(reservation_prefix(ref_, nonce));
    return {};
  }
  const bool goes_on =
      state && state->state() == VersionState::kReserved && !nonce.empty() && state->nonce == nonce;
  resumed_ = goes_on;
  if (!goes_on) MR_RETURN_IF_ERROR(journal_->restart(environment_.random.token()));
  options_.reached(PublishPoint::kNonceNoted);
  MR_ASSIGN_OR_RETURN(reservation_, environment_.registry.reserve(
                                        request(), ref_,
                                        {.reason = fmt::format("publish of {}", source_.describe()),
                                         .nonce = journal_->nonce()}));
  options_.reached(PublishPoint::kReserved);
  // Whoever was killed may have left requests that reach the store later than anything that is done
  // now: what they write must be nobody's, so each life has a folder of its own.
  std::string prefix = reservation_prefix(ref_, reservation_->nonce);
  if (goes_on) prefix += environment_.random.token().substr(0, kLifeDigits) + "/";
  start_uploads(std::move(prefix));
  return {};
}

void Publication::start_uploads(std::string prefix) {
  uploads_.emplace(context_, environment_.store, environment_.buffers, environment_.clock, source_,
                   *journal_,
                   PublishUploadOptions{.prefix = std::move(prefix),
                                        .parallel = options_.parallel,
                                        .request_timeout = options_.request_timeout,
                                        .only_noted = own_commit_.has_value(),
                                        .copied_from = options_.copied_from,
                                        .stored = options_.progress.stored,
                                        .reached = options_.reached});
}

// After the reservation: a version that is purged later is not deleted before this has ended.
Status Publication::choose_base() {
  if (own_commit_) {
    const std::vector<VersionRef>& parents = own_commit_->facts->layout.parents;
    if (parents.empty()) return {};
    MR_ASSIGN_OR_RETURN(base_entry_, environment_.registry.version(request(), parents.front()));
    return base_entry_->facts ? Status() : Status(StatusCode::kNotFound, "the base is gone");
  }
  if (options_.without_base) return {};
  if (options_.base) {
    MR_ASSIGN_OR_RETURN(base_entry_,
                        environment_.registry.resolve(request(), {ref_.dataset, *options_.base}));
    return {};
  }
  MR_ASSIGN_OR_RETURN(const std::vector<VersionListing> versions,
                      environment_.registry.versions(request(), ref_.dataset));
  for (const VersionListing& version : versions) {
    if (!version.entry || !version.entry->readable()) continue;
    if (!base_entry_ || base_entry_->facts->published < version.entry->facts->published) {
      base_entry_ = *version.entry;
    }
  }
  return {};
}

Status Publication::open_base() {
  MR_RETURN_IF_ERROR(choose_base());
  if (!base_entry_) return {};
  ManifestStore manifests(environment_.store, environment_.state_directory + "/manifests");
  MR_ASSIGN_OR_RETURN(base_manifest_, manifests.open_whole(context_, base_entry_->facts->layout));
  MR_ASSIGN_OR_RETURN(base_, PublishBase::open(*base_manifest_));
  report_.base = base_entry_->ref.version;
  if (!options_.rehash) known_ = KnownFilesReader::open(known_path());
  return {};
}

Status Publication::plan() {
  std::vector<Candidate> batch;
  for (;;) {
    MR_ASSIGN_OR_RETURN(std::optional<SourceEntry> entry, scan_.next());
    if (!entry || batch.size() == kHashBatch) {
      MR_RETURN_IF_ERROR(plan_batch(batch));
      batch.clear();
    }
    if (!entry) break;
    batch.push_back({.entry = *std::move(entry)});
  }
  MR_RETURN_IF_ERROR(planner_.finish());
  return uploads_ ? uploads_->wait() : Status();
}

Status Publication::plan_batch(std::vector<Candidate>& batch) {
  MR_RETURN_IF_ERROR(hash_batch(batch));
  for (const Candidate& candidate : batch)
    MR_RETURN_IF_ERROR(plan_entry(candidate));
  return {};
}

Status Publication::hash_batch(std::vector<Candidate>& batch) {
  if (!base_) return {};
  TaskGroup hashing(context_, options_.parallel);
  for (Candidate& candidate : batch) {
    if (candidate.entry.kind != EntryKind::kFile) continue;
    MR_ASSIGN_OR_RETURN(candidate.same_path, base_->same_path(candidate.entry.path));
    if (known_) candidate.hash = known_->find(candidate.entry);
    if (candidate.hash || !base_->may_have(candidate.same_path, candidate.entry.size)) continue;
    MR_RETURN_IF_ERROR(hashing.add([this, &candidate](const RequestContext& part) -> Status {
      MR_ASSIGN_OR_RETURN(candidate.hash, hash_file(part, source_, candidate.entry));
      return {};
    }));
  }
  return hashing.wait();
}

Status Publication::plan_entry(const Candidate& candidate) {
  PublishedEntry published{.source = candidate.entry};
  if (candidate.entry.kind == EntryKind::kFile) {
    ++report_.files;
    report_.bytes += candidate.entry.size;
    samples_.add(candidate.entry.path);
    if (candidate.hash) {
      MR_ASSIGN_OR_RETURN(published.reused,
                          base_->find(candidate.same_path, candidate.entry.size, *candidate.hash));
    }
    if (published.reused) {
      ++report_.reused_files;
      report_.reused_bytes += candidate.entry.size;
    } else {
      MR_RETURN_IF_ERROR(planner_.add(candidate.entry));
    }
  }
  return options_.dry_run ? Status() : entries_.add(published);
}

Result<ManifestSummary> Publication::write_manifest(const std::string& path) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<KnownFilesWriter> known,
                      KnownFilesWriter::create(known_path()));
  MR_ASSIGN_OR_RETURN(const ManifestSummary summary,
                      PublishManifest::write({.entries = entries_,
                                              .object_paths = object_paths_,
                                              .packs = uploads_->packs(),
                                              .objects = uploads_->objects(),
                                              .journal = *journal_,
                                              .bases = {base_manifest_.get()},
                                              .known = known.get()},
                                             path, scratch_));
  MR_RETURN_IF_ERROR(known->finish());
  return summary;
}

VersionFacts Publication::facts(const ManifestSummary& summary, VersionLayout layout) const {
  if (report_.reused_files > 0) {
    layout.parents = {base_entry_->ref};
    for (const VersionRef& parent : base_entry_->facts->layout.parents) {
      if (layout.parents.size() < kParentsMax) layout.parents.push_back(parent);
    }
  }
  std::optional<std::uint64_t> sample_count = options_.sample_count;
  if (report_.indexed_samples) sample_count = report_.indexed_samples;
  if (!sample_count && samples_.count() > 0) sample_count = samples_.count();
  return new_version_facts({.origin = options_.origin,
                            .sample_count = sample_count,
                            .created = options_.created.value_or(environment_.clock.wall_now()),
                            .annotation = options_.annotation,
                            .source = source_.describe(),
                            .resumed = resumed_},
                           summary, std::move(layout));
}

Status Publication::index(const std::string& manifest_path) {
  if (!options_.index) return {};
  MR_ASSIGN_OR_RETURN(report_.indexed_samples,
                      index_samples(context_, environment_,
                                    {.manifest_path = manifest_path,
                                     .ref = ref_,
                                     .stores = environment_.stores,
                                     .parallel = options_.parallel,
                                     .request_timeout = options_.request_timeout}));
  return {};
}

Status Publication::commit() {
  const PublishUploadTotals totals = uploads_->totals();
  report_.resumed_bytes = totals.resumed_bytes;
  const Status checked = uploads_->check_all(context_);
  missed_objects_ = uploads_->missed_objects();
  MR_RETURN_IF_ERROR(checked);
  options_.reached(PublishPoint::kChecked);
  const std::string path = fmt::format("{}/{}.manifest", scratch_, reservation_->nonce);
  MR_ASSIGN_OR_RETURN(const ManifestSummary summary, write_manifest(path));
  options_.reached(PublishPoint::kManifestWritten);
  const Status indexed = index(path);
  ManifestStore manifests(environment_.store, environment_.state_directory + "/manifests");
  Result<VersionLayout> layout =
      indexed.ok() ? manifests.put(context_, path, ref_, reservation_->nonce) : failure(indexed);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (!layout) return layout.error();
  options_.reached(PublishPoint::kManifestStored);
  MR_ASSIGN_OR_RETURN(
      report_.entry,
      environment_.registry.commit(request(), *reservation_, facts(summary, *std::move(layout))));
  options_.reached(PublishPoint::kCommitted);
  remove_journal();
  return {};
}

// The journal says that the version is this publish's own, and has all that the source needs. It is
// the same version when the same manifest comes of that.
Status Publication::recognise() {
  report_.resumed_bytes = uploads_->totals().resumed_bytes;
  const std::string path = fmt::format("{}/{}.manifest", scratch_, journal_->nonce());
  const Result<ManifestSummary> summary = write_manifest(path);
  const Status indexed = summary ? index(path) : summary.error();
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  MR_RETURN_IF_ERROR(indexed);
  if (summary->content_digest != own_commit_->facts->content_digest) {
    return {StatusCode::kPreconditionFailed, "the source has changed since it was published"};
  }
  report_.entry = own_commit_;
  remove_journal();
  return {};
}

void Publication::remove_journal() {
  if (Status status = journal_->remove(); !status.ok()) {
    log_warn("a publish that is done left its journal", {{"error", status.to_string()}});
  }
  options_.reached(PublishPoint::kJournalRemoved);
}

}  // namespace

std::size_t publish_parallel() {
  return std::clamp<std::size_t>(2 * std::size_t{std::thread::hardware_concurrency()}, 4, 8);
}

Result<PublishReport> publish(const RequestContext& context, const PublishEnvironment& environment,
                              SourceTree& source, const VersionRef& ref,
                              const PublishOptions& options) {
  for (int attempt = 1;; ++attempt) {
    Publication publication(context, environment, source, ref, options);
    Result<PublishReport> report = publication.run();
    if (report || attempt == kAttemptsMax || !publication.can_be_mended()) return report;
    log_warn("the store does not have what was stored, so it is stored again",
             {{"error", report.error().to_string()}});
  }
}

}  // namespace millrace
