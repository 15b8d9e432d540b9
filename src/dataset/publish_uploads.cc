#include "dataset/publish_uploads.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/hex.h"
#include "cache/unit.h"

namespace millrace {
namespace {

constexpr std::string_view kPackFolder = "packs/";
constexpr std::string_view kPackSuffix = ".tar";
// As large as stores make the parts of an upload, so that one is sent without a copy.
constexpr std::uint64_t kUploadChunkBytes = 16 * kMiB;
static_assert(kUploadChunkBytes % kUnitBytes == 0, "checksums are of whole units");
// A file that needs more than one buffer is uploaded in parts.
constexpr std::uint64_t kUploadPutBytesMax = kUploadChunkBytes;
// A pack is one thing for the context, and may go to a slow store.
constexpr int kTimeoutsPerPack = 6;

// Reads the next bytes of a file, hashes them and sums them up.
class HashedFileReader {
 public:
  HashedFileReader(SourceFile& file, const SourceEntry& entry, BufferPool& pool)
      : file_(file), entry_(entry), pool_(pool) {}

  bool at_end() const { return offset_ == entry_.size; }

  Result<Slice> next(const RequestContext& context) {
    const std::uint64_t length = std::min(kUploadChunkBytes, entry_.size - offset_);
    MR_ASSIGN_OR_RETURN(Buffer buffer, pool_.allocate(context, length));
    MR_ASSIGN_OR_RETURN(const std::size_t size, file_.read_at(context, offset_, buffer.bytes()));
    if (size != length) return failure(source_changed(entry_.path, "it became shorter"));
    sha_.add(buffer.bytes());
    const ByteView bytes = buffer.bytes();
    for (std::size_t at = 0; at < length; at += kUnitBytes)
      checksums_.push_back(crc32c(bytes.subspan(at, std::min(kUnitBytes, length - at))));
    offset_ += length;
    return std::move(buffer).freeze();
  }

  Sha256Digest hash() { return sha_.finish(); }
  std::vector<std::uint32_t> take_checksums() { return std::move(checksums_); }

 private:
  SourceFile& file_;
  const SourceEntry& entry_;
  BufferPool& pool_;
  std::uint64_t offset_ = 0;
  Sha256 sha_;
  std::vector<std::uint32_t> checksums_;
};

Status check_unchanged(const RequestContext& context, SourceFile& file, const SourceEntry& entry) {
  MR_ASSIGN_OR_RETURN(const bool unchanged, file.unchanged(context));
  return unchanged ? Status() : source_changed(entry.path, "while it was read");
}

}  // namespace

std::string reservation_prefix(const VersionRef& ref, std::string_view nonce) {
  return fmt::format("{}/{}/{}/", ref.dataset.text(), ref.version.text(), nonce);
}

ObjectKey pack_key(std::string_view prefix, std::uint64_t number) {
  return ObjectKey(fmt::format("{}{}{:08}{}", prefix, kPackFolder, number, kPackSuffix));
}

bool is_pack_key(std::string_view key) {
  const std::size_t name = key.rfind('/') + 1;
  return key.substr(0, name).ends_with(kPackFolder) && key.ends_with(kPackSuffix);
}

PublishUploads::PublishUploads(const RequestContext& context, ObjectStore& store, BufferPool& pool,
                               Clock& clock, SourceTree& source, PublishJournal& journal,
                               PublishUploadOptions options)
    : store_(store),
      pool_(pool),
      clock_(clock),
      source_(source),
      journal_(journal),
      options_(std::move(options)),
      readers_({"read", options_.parallel * 2, 4096}),
      builder_(store, pool, &readers_),
      tasks_(context, options_.parallel) {}

RequestContext PublishUploads::request(const RequestContext& context) const {
  return context.with_deadline(clock_.now() + options_.request_timeout);
}

ObjectKey PublishUploads::path_key(const std::string& path) const {
  return ObjectKey(fmt::format("{}files/{}", options_.prefix, path));
}

ObjectKey PublishUploads::digest_key(const std::string& path) const {
  return ObjectKey(fmt::format("{}objects/{}", options_.prefix, to_hex(sha256(as_bytes(path)))));
}

Status PublishUploads::add_pack(PlannedPack pack) {
  std::vector<const SourceEntry*> files;
  for (const PlannedMember& member : pack.members)
    files.push_back(&member.file);
  const Sha256Digest plan = plan_digest(files);
  const std::uint64_t number = packs_.size();
  packs_.push_back(plan);
  MR_ASSIGN_OR_RETURN(const bool stored, is_stored(plan));
  if (stored) return {};
  auto planned = std::make_shared<const PlannedPack>(std::move(pack));
  return tasks_.add([this, planned, number, plan](const RequestContext& context) {
    return store_pack(context, *planned, number, plan);
  });
}

Status PublishUploads::add_object(SourceEntry file) {
  const Sha256Digest plan = plan_digest({&file});
  objects_.push_back(plan);
  MR_ASSIGN_OR_RETURN(const bool stored, is_stored(plan));
  if (stored) return {};
  return tasks_.add([this, file = std::move(file), plan](const RequestContext& context) {
    return store_object(context, file, plan);
  });
}

Result<bool> PublishUploads::is_stored(const Sha256Digest& plan) {
  MR_ASSIGN_OR_RETURN(const std::optional<StoredContent> content, journal_.find(plan));
  if (!content && options_.only_noted) {
    return failure(StatusCode::kPreconditionFailed,
                   "the source has changed since it was published");
  }
  if (!content) return false;
  count(content->size, true);
  options_.stored(content->size);
  return true;
}

void PublishUploads::count(std::uint64_t bytes, bool resumed) {
  ++objects_done_;
  bytes_done_ += bytes;
  if (!resumed) return;
  ++objects_resumed_;
  bytes_resumed_ += bytes;
}

PublishUploadTotals PublishUploads::totals() const {
  return {.objects = objects_done_,
          .bytes = bytes_done_,
          .resumed_objects = objects_resumed_,
          .resumed_bytes = bytes_resumed_};
}

// ---- Storing

Status PublishUploads::store_pack(const RequestContext& context, const PlannedPack& pack,
                                  std::uint64_t number, const Sha256Digest& plan) {
  const ObjectKey key = pack_key(options_.prefix, number);
  const RequestContext in_time =
      context.with_deadline(clock_.now() + kTimeoutsPerPack * options_.request_timeout);
  MR_ASSIGN_OR_RETURN(BuiltPack built, builder_.build(in_time, source_, pack, key, PutOptions{}));
  StoredContent content{.key = key,
                        .identity = built.object.identity,
                        .size = built.object.size,
                        .checksums = std::move(built.checksums)};
  for (const BuiltPack::Member& member : built.members)
    content.members.push_back({member.content_offset, ContentHash::of_content(member.hash)});
  options_.reached(PublishPoint::kPackStored);
  MR_RETURN_IF_ERROR(journal_.add(plan, content));
  options_.reached(PublishPoint::kPackNoted);
  count(content.size, false);
  options_.stored(content.size);
  return {};
}

Status PublishUploads::store_object(const RequestContext& context, const SourceEntry& file,
                                    const Sha256Digest& plan) {
  // Names are bytes, and longer than keys may be. How long those may be the store alone knows: it
  // may lie below a prefix of another one.
  ObjectKey key = path_key(file.path);
  const bool may_fit = validate_key(key).ok();
  if (!may_fit) key = digest_key(file.path);
  Result<StoredContent> content = store_file(context, file, key);
  if (may_fit && !content && content.error() == StatusCode::kInvalidArgument) {
    key = digest_key(file.path);
    content = store_file(context, file, key);
  }
  if (!content) return content.error();
  if (content->size != file.size) {
    return {StatusCode::kInternal, fmt::format("'{}' has {} bytes in the store, but {} were sent",
                                               key.value(), content->size, file.size)};
  }
  options_.reached(PublishPoint::kObjectStored);
  MR_RETURN_IF_ERROR(journal_.add(plan, *content));
  options_.reached(PublishPoint::kObjectNoted);
  count(content->size, false);
  return {};
}

Result<StoredContent> PublishUploads::store_file(const RequestContext& context,
                                                 const SourceEntry& file, const ObjectKey& key) {
  return options_.copied_from ? copy_file(context, file, key) : upload_file(context, file, key);
}

Result<StoredContent> PublishUploads::upload_file(const RequestContext& context,
                                                  const SourceEntry& file, const ObjectKey& key) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceFile> opened,
                      source_.open(request(context), file));
  HashedFileReader reader(*opened, file, pool_);
  ObjectInfo stored;
  if (file.size <= kUploadPutBytesMax) {
    MR_ASSIGN_OR_RETURN(Slice bytes, reader.next(request(context)));
    MR_RETURN_IF_ERROR(check_unchanged(request(context), *opened, file));
    MR_ASSIGN_OR_RETURN(stored, store_.put(request(context), key, std::move(bytes), PutOptions{}));
    options_.stored(file.size);
  } else {
    // Aborted by its destructor when anything fails.
    MR_ASSIGN_OR_RETURN(
        const std::unique_ptr<Upload> upload,
        store_.start_upload(request(context), key, PutOptions{.size_hint = file.size}));
    while (!reader.at_end()) {
      MR_ASSIGN_OR_RETURN(Slice bytes, reader.next(request(context)));
      const std::uint64_t length = bytes.size();
      MR_RETURN_IF_ERROR(upload->write(request(context), std::move(bytes)));
      options_.stored(length);
      options_.reached(PublishPoint::kPartWritten);
    }
    MR_RETURN_IF_ERROR(check_unchanged(request(context), *opened, file));
    MR_ASSIGN_OR_RETURN(stored, upload->finish(request(context)));
  }
  return StoredContent{.key = key,
                       .identity = stored.identity,
                       .size = stored.size,
                       .checksums = reader.take_checksums(),
                       .members = {{0, ContentHash::of_content(reader.hash())}}};
}

Result<StoredContent> PublishUploads::copy_file(const RequestContext& context,
                                                const SourceEntry& file, const ObjectKey& key) {
  const ObjectInfo source = options_.copied_from(file);
  // A large copy is done in parts, each of them a request.
  const RequestContext in_time =
      context.with_deadline(clock_.now() + kTimeoutsPerPack * options_.request_timeout);
  MR_ASSIGN_OR_RETURN(const ObjectInfo stored, store_.copy(in_time, source, key));
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceFile> opened,
                      source_.open(request(context), file));
  MR_RETURN_IF_ERROR(check_unchanged(request(context), *opened, file));
  options_.stored(file.size);
  return StoredContent{.key = key,
                       .identity = stored.identity,
                       .size = stored.size,
                       .members = {{0, ContentHash::of_identity(source.identity)}}};
}

// ---- Checking

Status PublishUploads::check(const RequestContext& context, const Sha256Digest& plan) {
  MR_ASSIGN_OR_RETURN(const std::optional<StoredContent> content, journal_.find(plan));
  if (!content) return {StatusCode::kInternal, "an object was not noted in the journal"};
  const Result<ObjectInfo> found = store_.head(request(context), content->key);
  if (!found && found.error().code() != StatusCode::kNotFound) return found.error();
  if (found && found->size == content->size && found->identity == content->identity) return {};
  MR_RETURN_IF_ERROR(journal_.forget(plan));
  const auto facts = [](const ObjectIdentity& identity, std::uint64_t size) {
    return fmt::format("{} with {} bytes", identity.value(), size);
  };
  // The others are looked at all the same, so that whoever mends it knows all of them.
  MutexLock lock(mutex_);
  if (!missed_.ok()) return {};
  missed_ = Status(
      StatusCode::kConflict,
      fmt::format("'{}' is not in {} as it was stored ({}, but was {}); if nothing else writes "
                  "there, run the same command again to store it anew",
                  content->key.value(), store_.describe(),
                  found ? "it is " + facts(found->identity, found->size) : "it is gone",
                  facts(content->identity, content->size)));
  return {};
}

bool PublishUploads::missed_objects() const {
  MutexLock lock(mutex_);
  return !missed_.ok();
}

Status PublishUploads::check_all(const RequestContext& context) {
  TaskGroup checks(context, options_.parallel * 4);
  for (const std::vector<Sha256Digest>* plans : {&packs_, &objects_}) {
    for (const Sha256Digest& plan : *plans) {
      MR_RETURN_IF_ERROR(
          checks.add([this, plan](const RequestContext& part) { return check(part, plan); }));
    }
  }
  MR_RETURN_IF_ERROR(checks.wait());
  MutexLock lock(mutex_);
  return missed_;
}

}  // namespace millrace
