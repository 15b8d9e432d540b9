#include "dataset/manifest_store.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/at_hand.h"
#include "base/current_request.h"
#include "base/hex.h"
#include "dataset/frame_pages.h"
#include "dataset/frame_writer.h"
#include "platform/file.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::uint64_t kUploadPieceBytes = 4 * kMiB;
// What the frames of a stored manifest hash to, in the object's metadata.
constexpr std::string_view kFramesDigestName = "frames-sha256";

Status make_manifest_directory(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  return error ? file_error(error.value(), "make directory", path) : Status();
}

// A file that goes when this does.
class TemporaryFrames {
 public:
  explicit TemporaryFrames(std::string path) : path_(std::move(path)) {}
  ~TemporaryFrames() { (void)std::remove(path_.c_str()); }
  TemporaryFrames(const TemporaryFrames&) = delete;
  TemporaryFrames& operator=(const TemporaryFrames&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

Result<Slice> read_piece(const File& file, ByteRange range) {
  auto memory = std::make_shared<std::vector<std::byte>>(range.length);
  MR_ASSIGN_OR_RETURN(const std::size_t size, file.read_at(range.offset, *memory));
  if (size != range.length) {
    return failure(StatusCode::kIoError, fmt::format("'{}' became shorter", file.path()));
  }
  const ByteView bytes(*memory);
  return Slice::borrow(bytes, std::move(memory));
}

Result<Sha256Digest> digest_of(const File& file, std::uint64_t bytes) {
  Sha256 sha;
  for (std::uint64_t at = 0; at < bytes; at += kUploadPieceBytes) {
    MR_ASSIGN_OR_RETURN(const Slice piece,
                        read_piece(file, {at, std::min(kUploadPieceBytes, bytes - at)}));
    sha.add(piece.bytes());
  }
  return sha.finish();
}

// Whether an earlier attempt has stored the same frames.
Result<bool> has_frames(const RequestContext& context, ObjectStore& store, const ObjectKey& key,
                        std::uint64_t bytes, const std::string& digest) {
  const Result<ObjectInfo> found = store.head(context, key);
  if (!found && found.error() == StatusCode::kNotFound) return false;
  if (!found) return failure(found.error());
  const auto noted = found->metadata.find(std::string(kFramesDigestName));
  return found->size == bytes && noted != found->metadata.end() && noted->second == digest;
}

Status upload_frames(const RequestContext& context, ObjectStore& store, const ObjectKey& key,
                     const File& file, std::uint64_t bytes, const std::string& digest) {
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Upload> upload,
      store.start_upload(
          context, key,
          PutOptions{.metadata = {{std::string(kFramesDigestName), digest}}, .size_hint = bytes}));
  for (std::uint64_t at = 0; at < bytes; at += kUploadPieceBytes) {
    MR_ASSIGN_OR_RETURN(Slice piece,
                        read_piece(file, {at, std::min(kUploadPieceBytes, bytes - at)}));
    MR_RETURN_IF_ERROR(upload->write(context, std::move(piece)));
  }
  MR_ASSIGN_OR_RETURN(const ObjectInfo stored, upload->finish(context));
  MR_ASSIGN_OR_RETURN(const ObjectInfo found, store.head(context, key));
  if (found.size == bytes && found.identity == stored.identity) return {};
  return {StatusCode::kConflict,
          fmt::format("{} has another object under '{}' than was just written; is something else "
                      "writing there?",
                      store.describe(), key.value())};
}

}  // namespace

ObjectKey manifest_key(const VersionRef& ref, std::string_view nonce,
                       const Sha256Digest& layout_digest) {
  return ObjectKey(fmt::format("{}{}/{}/{}/{}", kManifestsPrefix, ref.dataset.key_component(),
                               ref.version.text(), nonce, to_hex(layout_digest)));
}

Result<VersionLayout> ManifestStore::put(const RequestContext& context, const std::string& path,
                                         const VersionRef& ref, std::string_view nonce) {
  const TemporaryFrames frames(path + ".frames");
  MR_ASSIGN_OR_RETURN(const FramesSummary summary, write_frames(path, frames.path()));
  MR_ASSIGN_OR_RETURN(const File file, File::open(frames.path(), O_RDONLY));
  const ObjectKey key = manifest_key(ref, nonce, summary.layout_digest);
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<Manifest> manifest, Manifest::open(path));
  MR_ASSIGN_OR_RETURN(const Sha256Digest digest, digest_of(file, summary.framed_bytes));
  MR_ASSIGN_OR_RETURN(const bool stored,
                      has_frames(context, store_, key, summary.framed_bytes, to_hex(digest)));
  // Others than these are no manifest that anybody reads: nothing is lost by replacing them.
  if (!stored) {
    MR_RETURN_IF_ERROR(
        upload_frames(context, store_, key, file, summary.framed_bytes, to_hex(digest)));
  }
  return VersionLayout{.layout_digest = summary.layout_digest,
                       .manifest_key = key.value(),
                       .manifest_bytes = summary.framed_bytes,
                       .index_bytes = summary.index_bytes,
                       .stored_bytes = manifest->totals().stored_bytes};
}

Result<std::unique_ptr<Manifest>> ManifestStore::open(const RequestContext& context,
                                                      const VersionLayout& layout) {
  return open(context, layout, false);
}

Result<std::unique_ptr<Manifest>> ManifestStore::open_whole(const RequestContext& context,
                                                            const VersionLayout& layout) {
  return open(context, layout, true);
}

Result<std::unique_ptr<Manifest>> ManifestStore::open(const RequestContext& context,
                                                      const VersionLayout& layout, bool whole) {
  MR_RETURN_IF_ERROR(make_manifest_directory(directory_));
  const ObjectKey key(layout.manifest_key);
  auto pages = FramedManifestPages::open(
      {.path = fmt::format("{}/{}", directory_, to_hex(layout.layout_digest)),
       .framed_bytes = layout.manifest_bytes,
       .index_bytes = layout.index_bytes,
       .fetch = [&store = store_, context, key](std::uint64_t offset,
                                                std::uint64_t length) -> Result<Slice> {
         MR_RETURN_IF_ERROR(AtHandOnly::may_wait());
         const RequestContext* const request = CurrentRequest::get();
         MR_ASSIGN_OR_RETURN(GetResult got,
                             store.get(request == nullptr ? context : *request,
                                       {.key = key, .range = ByteRange{offset, length}}));
         return std::move(got.data);
       },
       .layout_digest = layout.layout_digest});
  if (!pages) {
    return failure(pages.error().with_context(fmt::format("the manifest '{}'", key.value())));
  }
  if (whole) MR_RETURN_IF_ERROR((*pages)->fetch_all());
  return std::make_unique<Manifest>(*std::move(pages));
}

}  // namespace millrace
