#include "loader/decompression.h"

#include <bzlib.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <limits>
#include <utility>

#include <brotli/decode.h>
#include <fmt/format.h>

#include "loader/snappy_block.h"

namespace millrace {

namespace {

// The libraries count in 32 bits.
constexpr std::uint64_t kWholeFileBytesMax = std::numeric_limits<std::uint32_t>::max();

Status damaged(std::string_view algorithm, std::string_view why) {
  return {StatusCode::kCorruption, fmt::format("{}: {}", algorithm, why)};
}

Status from_zstd(ByteView bytes, MutableByteView into) {
  const std::size_t got = ZSTD_decompress(into.data(), into.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) != 0) return damaged("zstd", ZSTD_getErrorName(got));
  return got == into.size() ? Status() : damaged("zstd", "another length than the index has");
}

Status from_gzip(ByteView bytes, MutableByteView into) {
  z_stream stream{};
  constexpr int kGzipHeader = 16;
  if (inflateInit2(&stream, MAX_WBITS + kGzipHeader) != Z_OK) {
    return {StatusCode::kResourceExhausted, "gz: no memory"};
  }
  // zlib promises to leave its input alone.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(into.data());
  stream.avail_out = static_cast<uInt>(into.size());
  const int end = inflate(&stream, Z_FINISH);
  const bool whole = end == Z_STREAM_END && stream.avail_out == 0 && stream.avail_in == 0;
  inflateEnd(&stream);
  return whole ? Status() : damaged("gz", "damaged, or another length than the index has");
}

Status from_bzip2(ByteView bytes, MutableByteView into) {
  auto got = static_cast<unsigned>(into.size());
  // bzip2 promises to leave its input alone.
  char* const from = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
  const int end = BZ2_bzBuffToBuffDecompress(reinterpret_cast<char*>(into.data()), &got, from,
                                             static_cast<unsigned>(bytes.size()), 0, 0);
  const bool whole = end == BZ_OK && got == into.size();
  return whole ? Status() : damaged("bz2", "damaged, or another length than the index has");
}

Status from_brotli(ByteView bytes, MutableByteView into) {
  std::size_t got = into.size();
  const BrotliDecoderResult end =
      BrotliDecoderDecompress(bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()),
                              &got, reinterpret_cast<std::uint8_t*>(into.data()));
  const bool whole = end == BROTLI_DECODER_RESULT_SUCCESS && got == into.size();
  return whole ? Status() : damaged("br", "damaged, or another length than the index has");
}

using Decompress = Status (*)(ByteView bytes, MutableByteView into);

constexpr std::array<std::pair<std::string_view, Decompress>, 5> kDecompressors = {{
    {"zstd", from_zstd},
    {"gz", from_gzip},
    {"bz2", from_bzip2},
    {"snappy", decompress_snappy},
    {"br", from_brotli},
}};

}  // namespace

Result<Slice> decompress(std::string_view algorithm, ByteView bytes, std::uint64_t raw_bytes) {
  if (raw_bytes > kWholeFileBytesMax || bytes.size() > kWholeFileBytesMax) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("a file of {} bytes, compressed as a whole", raw_bytes));
  }
  for (const auto& [name, fill] : kDecompressors) {
    if (name != algorithm) continue;
    Buffer buffer = Buffer::allocate(raw_bytes);
    MR_RETURN_IF_ERROR(fill(bytes, buffer.bytes()));
    return std::move(buffer).freeze();
  }
  return failure(StatusCode::kUnsupported,
                 fmt::format("'{}' is no compression that is read here", algorithm.substr(0, 40)));
}

}  // namespace millrace
