#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest_format.h"
#include "platform/digest.h"

// How a manifest lies in the store (docs/formats/manifest.md): zstd frames, each of them a few
// pages and fit to be fetched by itself, then their index, then a trailer. Index and trailer are
// read together, from the end.
namespace millrace {

inline constexpr std::uint64_t kFramePages = 4;
inline constexpr std::uint64_t kFrameBytes = kFramePages * kManifestPageBytes;
inline constexpr std::size_t kFrameRecordBytes = 16;
inline constexpr std::size_t kFrameTrailerBytes = 128;

// One frame, compressed.
struct FrameRecord {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t checksum = 0;  // CRC-32C of the compressed bytes.

  std::uint64_t end() const { return offset + bytes; }
  bool operator==(const FrameRecord&) const = default;
};

struct FrameIndex {
  std::vector<FrameRecord> frames;  // One behind the other, from offset 0.
  std::uint64_t manifest_bytes = 0;
  Sha256Digest layout_digest{};
  // Of the first page, which vouches for the page table and so for all others: it tells whether a
  // file from before is of this manifest.
  Sha256Digest header_digest{};

  // How long frame `number` is when it is not compressed.
  std::uint64_t frame_bytes(std::uint64_t number) const;
};

// Index and trailer.
std::vector<std::byte> encode_frame_index(const FrameIndex& index);
// `bytes` are index and trailer of an object of `framed_bytes`. kUnsupported for another format,
// kCorruption for anything that an encoder does not write.
Result<FrameIndex> decode_frame_index(ByteView bytes, std::uint64_t framed_bytes);

// Fills all of `into` from a frame. kCorruption when it holds anything else, or less, or more.
Status decompress_frame(ByteView frame, MutableByteView into);

}  // namespace millrace
