#include "dataset/frame_writer.h"

#include <unistd.h>
#include <zstd.h>

#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/checksum.h"
#include "dataset/frame_format.h"
#include "dataset/manifest_pages.h"
#include "platform/file.h"

namespace millrace {
namespace {

// Higher levels win two or three percent: hashes are most of a manifest.
constexpr int kFrameLevel = 3;

class FrameCompressor {
 public:
  FrameCompressor() : context_(ZSTD_createCCtx()), out_(ZSTD_compressBound(kFrameBytes)) {}

  // Valid until the next call.
  Result<ByteView> compress(ByteView bytes) {
    const std::size_t count = ZSTD_compressCCtx(context_.get(), out_.data(), out_.size(),
                                                bytes.data(), bytes.size(), kFrameLevel);
    if (ZSTD_isError(count) != 0) {
      return failure(StatusCode::kInternal,
                     fmt::format("cannot compress: {}", ZSTD_getErrorName(count)));
    }
    return ByteView(out_).first(count);
  }

 private:
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> context_;
  std::vector<std::byte> out_;
};

Result<FramesSummary> write_frames_to(const ManifestPages& pages, const File& out) {
  FrameIndex index{.frames = {},
                   .manifest_bytes = pages.header().file_bytes(),
                   .layout_digest = {},
                   .header_digest = {}};
  Sha256 sha;
  FrameCompressor compressor;
  std::uint64_t at = 0;
  std::vector<std::byte> frame;
  for (std::uint64_t page = 0; page < pages.header().pages; ++page) {
    MR_ASSIGN_OR_RETURN(const ByteView bytes, pages.page(page));
    sha.add(bytes);
    if (page == 0) index.header_digest = sha256(bytes);
    frame.insert(frame.end(), bytes.begin(), bytes.end());
    if (frame.size() < kFrameBytes && page + 1 < pages.header().pages) continue;
    MR_ASSIGN_OR_RETURN(const ByteView compressed, compressor.compress(frame));
    MR_RETURN_IF_ERROR(out.write_at(at, compressed));
    index.frames.push_back({.offset = at,
                            .bytes = static_cast<std::uint32_t>(compressed.size()),
                            .checksum = crc32c(compressed)});
    at += compressed.size();
    frame.clear();
  }
  index.layout_digest = sha.finish();
  const std::vector<std::byte> end = encode_frame_index(index);
  MR_RETURN_IF_ERROR(out.write_at(at, end));
  return FramesSummary{.framed_bytes = at + end.size(),
                       .index_bytes = end.size(),
                       .manifest_bytes = index.manifest_bytes,
                       .layout_digest = index.layout_digest};
}

}  // namespace

Result<FramesSummary> write_frames(const std::string& path, const std::string& frames_path) {
  MR_ASSIGN_OR_RETURN(const auto pages, open_manifest_file(path));
  MR_ASSIGN_OR_RETURN(const File out, File::open(frames_path, O_WRONLY | O_CREAT | O_TRUNC));
  auto summary = write_frames_to(*pages, out);
  if (!summary) ::unlink(frames_path.c_str());
  return summary;
}

}  // namespace millrace
