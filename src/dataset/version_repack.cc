#include "dataset/version_repack.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "dataset/garbage_fates.h"
#include "dataset/manifest_cursor.h"
#include "dataset/pack_builder.h"
#include "dataset/publish_uploads.h"
#include "dataset/sample_name.h"
#include "dataset/version_source.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

// Offsets in packs are far below.
constexpr int kMemberOffsetBits = 40;
// A pack is one thing for the context, and is read and written.
constexpr int kTimeoutsPerCopy = 6;
constexpr std::uint64_t kRepackBufferBytesMax = 128 * kMiB;

std::string_view repack_sample_base(std::string_view path) {
  const auto name = sample_name(path);
  return name ? name->base : std::string_view();
}

}  // namespace

// Copies files of a version into new packs, one after the other.
class VersionRepacker::Copies final : public PackPlanSink {
 public:
  Copies(const VersionRepacker& repacker, const RequestContext& context,
         const VersionReader& reader, PublishJournal& journal, BufferPool& buffers)
      : repacker_(repacker),
        context_(context),
        reader_(reader),
        source_(reader),
        journal_(journal),
        builder_(repacker.access_.store, buffers),
        prefix_(reservation_prefix(reader.ref(), journal.nonce())),
        object_paths_(repacker.scratch_) {}

  Status add_pack(PlannedPack pack) override { return copy(pack, packs_); }
  // A file that fits no pack with others has one of its own.
  Status add_object(SourceEntry file) override {
    MR_ASSIGN_OR_RETURN(const std::uint64_t header,
                        tar_header_bytes(pack_tar_member(file), kPackTimes));
    MR_RETURN_IF_ERROR(object_paths_.add(file.path));
    PlannedPack pack{.members = {}, .bytes = header + tar_padded(file.size) + kTarEndBytes};
    pack.members.push_back({.file = std::move(file), .content_offset = header});
    return copy(pack, objects_);
  }

  std::uint64_t bytes() const { return bytes_; }
  const SpooledPaths& object_paths() const { return object_paths_; }
  const std::vector<Sha256Digest>& packs() const { return packs_; }
  const std::vector<Sha256Digest>& objects() const { return objects_; }

 private:
  Status copy(const PlannedPack& pack, std::vector<Sha256Digest>& plans) {
    ObjectStore& store = repacker_.access_.store;
    const RequestContext in_time = context_.with_deadline(
        repacker_.access_.clock.now() + kTimeoutsPerCopy * repacker_.options_.request_timeout);
    const ObjectKey key = pack_key(prefix_, packs_.size() + objects_.size());
    MR_ASSIGN_OR_RETURN(BuiltPack built, builder_.build(in_time, source_, pack, key, PutOptions{}));
    MR_RETURN_IF_ERROR(check_pack_content(reader_, pack, built));
    MR_ASSIGN_OR_RETURN(const ObjectInfo found, store.head(repacker_.request(context_), key));
    if (found.size != built.object.size || found.identity != built.object.identity) {
      return {StatusCode::kConflict, fmt::format("'{}' is not in {} as it was stored; is something "
                                                 "else writing there?",
                                                 key.value(), store.describe())};
    }
    StoredContent content{.key = key,
                          .identity = built.object.identity,
                          .size = built.object.size,
                          .checksums = std::move(built.checksums)};
    std::vector<const SourceEntry*> files;
    for (std::size_t n = 0; n < pack.members.size(); ++n) {
      content.members.push_back({.content_offset = built.members[n].content_offset,
                                 .hash = ContentHash::of_content(built.members[n].hash)});
      files.push_back(&pack.members[n].file);
    }
    plans.push_back(plan_digest(files));
    bytes_ += content.size;
    return journal_.add(plans.back(), content);
  }

  const VersionRepacker& repacker_;
  const RequestContext& context_;
  const VersionReader& reader_;
  VersionSource source_;
  PublishJournal& journal_;
  PackBuilder builder_;
  const std::string prefix_;
  SpooledPaths object_paths_;
  std::vector<Sha256Digest> packs_;
  std::vector<Sha256Digest> objects_;
  std::uint64_t bytes_ = 0;
};

struct VersionRepacker::SampleFile {
  PublishedEntry published = {};
  // Set for a file that must be copied.
  std::optional<Member> copied = {};
};

struct VersionRepacker::Work {
  const RequestContext& context;
  const VersionEntry& begun;
  const Manifest& manifest;
  PublishJournal& journal;
  PackNumbers packs;
  Copies copies;
  PackPlanner planner;
  PublishedEntries entries;
  // By the number of a base: whether its copies may be taken over, and whether they were.
  std::vector<bool> usable = {};
  std::set<std::uint32_t> used = {};
  std::vector<std::pair<Member, EntryIndex>> moves = {};
  std::string sample_base = {};
  std::vector<SampleFile> sample = {};
};

VersionRepacker::VersionRepacker(const RegistryAccess& access, RepackOptions options,
                                 const std::vector<std::string>& packs)
    : access_(access),
      registry_(access),
      options_(std::move(options)),
      scratch_(fmt::format("{}/repack-{}", options_.manifest_directory, access.random.token())),
      buffers_({.bytes_max = kRepackBufferBytesMax, .idle_bytes_max = kRepackBufferBytesMax / 4}),
      manifests_(access.store, options_.manifest_directory) {
  for (const std::string& key : packs)
    packs_.emplace(key, static_cast<std::uint32_t>(packs_.size()));
}

VersionRepacker::~VersionRepacker() {
  std::error_code ignored;
  std::filesystem::remove_all(scratch_, ignored);
}

RequestContext VersionRepacker::request(const RequestContext& context) const {
  return context.with_deadline(access_.clock.now() + options_.request_timeout);
}

Result<VersionRepacker::PackNumbers> VersionRepacker::packs_of(const Manifest& manifest) const {
  PackNumbers numbers;
  for (std::uint32_t number = 0; number < manifest.objects(); ++number) {
    MR_ASSIGN_OR_RETURN(const ManifestObject object, manifest.object(number));
    const auto pack = packs_.find(object.key.value());
    if (pack != packs_.end()) numbers.emplace(number, pack->second);
  }
  return numbers;
}

Result<VersionRepacker::Repacked> VersionRepacker::repack(const RequestContext& context,
                                                          const VersionRef& ref,
                                                          const VersionLayout& layout) {
  MR_ASSIGN_OR_RETURN(
      const VersionEntry begun,
      registry_.begin_repack(request(context), ref, "its packs are less than half alive"));
  Result<Repacked> done =
      begun.facts->layout == layout
          ? lay_out(context, begun)
          : failure(StatusCode::kConflict, fmt::format("{} has got another layout", ref.text()));
  if (done) return done;
  // What cannot be ended now is given up by a later collection.
  (void)registry_.abort_repack(request(context), ref, begun.open_work().nonce,
                               done.error().message());
  return done;
}

Result<VersionRepacker::Repacked> VersionRepacker::lay_out(const RequestContext& context,
                                                           const VersionEntry& begun) {
  std::error_code error;
  std::filesystem::create_directories(scratch_, error);
  if (error) return failure(file_error(error.value(), "make directory", scratch_));
  const std::string nonce = begun.open_work().nonce;
  const std::string path = fmt::format("{}/{}", scratch_, nonce);
  MR_ASSIGN_OR_RETURN(const auto manifest, manifests_.open_whole(context, begun.facts->layout));
  MR_ASSIGN_OR_RETURN(const auto journal,
                      PublishJournal::open(path + ".journal", begun.ref.text()));
  MR_RETURN_IF_ERROR(journal->restart(nonce));
  MR_ASSIGN_OR_RETURN(PackNumbers packs, packs_of(*manifest));
  const VersionReader reader(access_.store, *manifest, begun.ref,
                             {.request_timeout = options_.request_timeout}, access_.clock);
  PublishJournal& notes = *journal;
  Work work{.context = context,
            .begun = begun,
            .manifest = *manifest,
            .journal = notes,
            .packs = std::move(packs),
            .copies = Copies(*this, context, reader, notes, buffers_),
            // Whatever was in a pack goes into one again.
            .planner = PackPlanner({.file_bytes_max = UINT64_MAX}, work.copies),
            .entries = PublishedEntries(scratch_)};
  MR_RETURN_IF_ERROR(find_usable_bases(work));
  MR_RETURN_IF_ERROR(plan(work));
  MR_ASSIGN_OR_RETURN(const VersionLayout layout, store_manifest(work, path));
  MR_ASSIGN_OR_RETURN(const VersionEntry entry,
                      registry_.relayout(request(context), begun.ref, nonce, layout));
  MR_ASSIGN_OR_RETURN(auto moved_to, Manifest::open(path));
  for (const auto& [member, index] : work.moves)
    moved_.insert_or_assign(
        member, Moved{.base = static_cast<std::uint32_t>(bases_.size()), .entry = index});
  bases_.push_back(
      {.ref = begun.ref, .layout_digest = layout.layout_digest, .manifest = std::move(moved_to)});
  return Repacked{.layout = entry.facts->layout, .copied_bytes = work.copies.bytes()};
}

// After the repack of this version began: what these versions name then stays until it has ended.
Status VersionRepacker::find_usable_bases(Work& work) {
  for (const Base& base : bases_) {
    MR_ASSIGN_OR_RETURN(const VersionEntry now, registry_.version(request(work.context), base.ref));
    work.usable.push_back(now.readable() && now.facts->layout.layout_digest == base.layout_digest);
  }
  return {};
}

Status VersionRepacker::plan(Work& work) {
  ManifestCursor cursor(work.manifest);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) break;
    const std::string_view base = repack_sample_base(item->path);
    if (base.empty() || base != work.sample_base ||
        work.sample.size() == PackPlanner::kSampleFilesMax) {
      MR_RETURN_IF_ERROR(plan_sample(work));
      work.sample_base = base;
    }
    MR_ASSIGN_OR_RETURN(SampleFile file, sample_file(work, item->entry, std::string(item->path)));
    work.sample.push_back(std::move(file));
  }
  MR_RETURN_IF_ERROR(plan_sample(work));
  return work.planner.finish();
}

// An empty file is in no extent, but is a member of its sample's pack: it moves with the others.
Status VersionRepacker::plan_sample(Work& work) {
  const bool moves = std::ranges::any_of(
      work.sample, [](const SampleFile& file) { return file.copied.has_value(); });
  for (SampleFile& file : work.sample) {
    PublishedEntry& published = file.published;
    const bool empty_file = published.source.kind == EntryKind::kFile && published.source.size == 0;
    if (file.copied) work.moves.emplace_back(*file.copied, *published.reused);
    if (file.copied || (moves && empty_file)) {
      published.reused.reset();
      MR_RETURN_IF_ERROR(work.planner.add(published.source));
    }
    MR_RETURN_IF_ERROR(work.entries.add(published));
  }
  work.sample.clear();
  return {};
}

Result<VersionRepacker::SampleFile> VersionRepacker::sample_file(Work& work,
                                                                 const ManifestEntry& entry,
                                                                 std::string path) const {
  SampleFile file;
  MR_ASSIGN_OR_RETURN(file.published.source,
                      VersionSource::source_entry(work.manifest, entry, std::move(path)));
  if (entry.kind() != EntryKind::kFile) return file;
  file.published.reused = entry.index();
  MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, work.manifest.extents(entry));
  if (extents.size() != 1) return file;
  const auto pack = work.packs.find(extents[0].object);
  if (pack == work.packs.end()) return file;
  const Member member = (Member{pack->second} << kMemberOffsetBits) | extents[0].offset;
  const auto moved = moved_.find(member);
  if (moved == moved_.end() || !work.usable[moved->second.base]) {
    file.copied = member;
    return file;
  }
  file.published.reused = moved->second.entry;
  file.published.base = 1 + moved->second.base;
  work.used.insert(moved->second.base);
  return file;
}

Result<VersionLayout> VersionRepacker::store_manifest(Work& work, const std::string& path) {
  std::vector<const Manifest*> bases = {&work.manifest};
  for (const Base& base : bases_)
    bases.push_back(base.manifest.get());
  MR_ASSIGN_OR_RETURN(const ManifestSummary summary,
                      PublishManifest::write({.entries = work.entries,
                                              .object_paths = work.copies.object_paths(),
                                              .packs = work.copies.packs(),
                                              .objects = work.copies.objects(),
                                              .journal = work.journal,
                                              .bases = std::move(bases)},
                                             path, scratch_));
  if (summary.content_digest != work.manifest.content_digest()) {
    return failure(StatusCode::kInternal,
                   fmt::format("a repack of {} would change its content", work.begun.ref.text()));
  }
  MR_ASSIGN_OR_RETURN(VersionLayout layout,
                      manifests_.put(work.context, path, work.begun.ref, work.journal.nonce()));
  MR_ASSIGN_OR_RETURN(const auto made, Manifest::open(path));
  std::set<VersionRef> parents;
  for (std::uint32_t number = 0; number < made->objects(); ++number) {
    MR_ASSIGN_OR_RETURN(const ManifestObject object, made->object(number));
    const auto owner = object.foreign ? std::nullopt : version_of_key(object.key.value());
    if (owner && *owner != work.begun.ref && parents.size() < kParentsMax) parents.insert(*owner);
  }
  layout.parents.assign(parents.begin(), parents.end());
  return layout;
}

}  // namespace millrace
