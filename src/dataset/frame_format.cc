#include "dataset/frame_format.h"

#include <zstd.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"

namespace millrace {
namespace {

constexpr std::string_view kFrameMagic = "MRFRAMES";
constexpr std::uint32_t kFrameFormat = 1;
constexpr std::size_t kTrailerFormatAt = 8;
constexpr std::size_t kTrailerFramePagesAt = 12;
constexpr std::size_t kTrailerFramesAt = 16;
constexpr std::size_t kTrailerManifestBytesAt = 24;
constexpr std::size_t kTrailerDigestAt = 32;
constexpr std::size_t kTrailerHeaderDigestAt = 64;
constexpr std::size_t kTrailerIndexChecksumAt = 96;
constexpr std::size_t kTrailerChecksumAt = 124;

std::unexpected<Status> bad_frames(std::string_view why) {
  return failure(StatusCode::kCorruption, fmt::format("index of frames: {}", why));
}

// The frames of `index` as they must lie: without gaps from 0 up to the index.
bool frames_are_in_place(const FrameIndex& index, std::uint64_t frames_end) {
  std::uint64_t at = 0;
  for (const FrameRecord& frame : index.frames) {
    if (frame.offset != at || frame.bytes == 0) return false;
    at = frame.end();
  }
  return at == frames_end;
}

}  // namespace

std::uint64_t FrameIndex::frame_bytes(std::uint64_t number) const {
  return std::min(kFrameBytes, manifest_bytes - number * kFrameBytes);
}

std::vector<std::byte> encode_frame_index(const FrameIndex& index) {
  std::vector<std::byte> bytes(index.frames.size() * kFrameRecordBytes + kFrameTrailerBytes);
  std::byte* out = bytes.data();
  for (const FrameRecord& frame : index.frames) {
    store_little_endian(out, frame.offset);
    store_little_endian(out + 8, frame.bytes);
    store_little_endian(out + 12, frame.checksum);
    out += kFrameRecordBytes;
  }
  const std::uint32_t checksum =
      crc32c(ByteView(bytes).first(index.frames.size() * kFrameRecordBytes));
  std::ranges::copy(as_bytes(kFrameMagic), out);
  store_little_endian(out + kTrailerFormatAt, kFrameFormat);
  store_little_endian(out + kTrailerFramePagesAt, static_cast<std::uint32_t>(kFramePages));
  store_little_endian(out + kTrailerFramesAt, std::uint64_t{index.frames.size()});
  store_little_endian(out + kTrailerManifestBytesAt, index.manifest_bytes);
  std::ranges::copy(index.layout_digest, out + kTrailerDigestAt);
  std::ranges::copy(index.header_digest, out + kTrailerHeaderDigestAt);
  store_little_endian(out + kTrailerIndexChecksumAt, checksum);
  store_little_endian(out + kTrailerChecksumAt, crc32c({out, kTrailerChecksumAt}));
  return bytes;
}

Result<FrameIndex> decode_frame_index(ByteView bytes, std::uint64_t framed_bytes) {
  if (bytes.size() < kFrameTrailerBytes || bytes.size() > framed_bytes) {
    return bad_frames("it is cut off");
  }
  const ByteView trailer = bytes.last(kFrameTrailerBytes);
  if (as_text(trailer.first(kFrameMagic.size())) != kFrameMagic) {
    return bad_frames("it has no trailer");
  }
  const auto format = load_little_endian<std::uint32_t>(trailer.data() + kTrailerFormatAt);
  if (format != kFrameFormat) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("the manifest was stored in format {}, this Millrace knows only "
                               "format {}; use a later Millrace",
                               format, kFrameFormat));
  }
  if (load_little_endian<std::uint32_t>(trailer.data() + kTrailerChecksumAt) !=
      crc32c(trailer.first(kTrailerChecksumAt))) {
    return bad_frames("its trailer fails its checksum");
  }
  const ByteView records = bytes.first(bytes.size() - kFrameTrailerBytes);
  if (load_little_endian<std::uint32_t>(trailer.data() + kTrailerIndexChecksumAt) !=
      crc32c(records)) {
    return bad_frames("it fails its checksum");
  }
  FrameIndex index;
  index.manifest_bytes =
      load_little_endian<std::uint64_t>(trailer.data() + kTrailerManifestBytesAt);
  std::ranges::copy(trailer.subspan(kTrailerDigestAt, index.layout_digest.size()),
                    index.layout_digest.begin());
  std::ranges::copy(trailer.subspan(kTrailerHeaderDigestAt, index.header_digest.size()),
                    index.header_digest.begin());
  for (std::size_t at = 0; at + kFrameRecordBytes <= records.size(); at += kFrameRecordBytes) {
    const std::byte* const from = records.data() + at;
    index.frames.push_back({.offset = load_little_endian<std::uint64_t>(from),
                            .bytes = load_little_endian<std::uint32_t>(from + 8),
                            .checksum = load_little_endian<std::uint32_t>(from + 12)});
  }
  // In this order, so that no sum wraps around: as many frames as the manifest has, no more bytes
  // than there are.
  const bool sized = index.manifest_bytes > 0 && index.manifest_bytes % kManifestPageBytes == 0 &&
                     index.frames.size() == (index.manifest_bytes - 1) / kFrameBytes + 1;
  if (!sized || !frames_are_in_place(index, framed_bytes - bytes.size()) ||
      !std::ranges::equal(encode_frame_index(index), bytes)) {
    return bad_frames("it holds numbers that no manifest has");
  }
  return index;
}

Status decompress_frame(ByteView frame, MutableByteView into) {
  const std::size_t bytes = ZSTD_decompress(into.data(), into.size(), frame.data(), frame.size());
  if (ZSTD_isError(bytes) != 0) {
    return {StatusCode::kCorruption,
            fmt::format("it cannot be decompressed: {}", ZSTD_getErrorName(bytes))};
  }
  if (bytes != into.size()) {
    return {StatusCode::kCorruption,
            fmt::format("it holds {} bytes instead of {}", bytes, into.size())};
  }
  return {};
}

}  // namespace millrace
