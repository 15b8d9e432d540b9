#include "dataset/manifest_store.h"

#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "dataset/frame_pages.h"
#include "dataset/frame_writer.h"
#include "platform/file.h"
#include "platform/file_error.h"

namespace millrace {
namespace {

constexpr std::uint64_t kUploadPieceBytes = 4 * kMiB;

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
  // The same frames whoever writes them: nothing to be lost by replacing one.
  MR_ASSIGN_OR_RETURN(
      const std::unique_ptr<Upload> upload,
      store_.start_upload(context, key, PutOptions{.size_hint = summary.framed_bytes}));
  for (std::uint64_t at = 0; at < summary.framed_bytes; at += kUploadPieceBytes) {
    const std::uint64_t length = std::min(kUploadPieceBytes, summary.framed_bytes - at);
    MR_ASSIGN_OR_RETURN(Slice piece, read_piece(file, {at, length}));
    MR_RETURN_IF_ERROR(upload->write(context, std::move(piece)));
  }
  MR_ASSIGN_OR_RETURN(const ObjectInfo stored, upload->finish(context));
  MR_ASSIGN_OR_RETURN(const ObjectInfo found, store_.head(context, key));
  if (found.size != summary.framed_bytes || found.identity != stored.identity) {
    return failure(StatusCode::kConflict,
                   fmt::format("{} has another object under '{}' than was just written; is "
                               "something else writing there?",
                               store_.describe(), key.value()));
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
         MR_ASSIGN_OR_RETURN(GetResult got,
                             store.get(context, {.key = key, .range = ByteRange{offset, length}}));
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
