#include "cache/readahead.h"

#include <algorithm>
#include <bit>

#include "cache/unit.h"

namespace millrace {
namespace {

// Reads of one stream that overtake each other stay within this distance: 64 requests of 256 KiB.
constexpr std::uint64_t kDisorderBytesMax = 16 * kMiB;

std::uint64_t round_up(std::uint64_t value, std::uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

FetchAhead Readahead::note_read(ByteRange read, std::uint64_t object_size) {
  if (read.empty() || options_.window_bytes_max == 0) return {};
  ++reads_;
  Stream* stream = find(read);
  if (stream == nullptr) {
    oldest() = Stream{.next = read.end(),
                      .read_bytes = read.length,
                      .announced = read.end(),
                      .last_used = reads_};
    return {};
  }
  stream->last_used = reads_;
  stream->read_bytes += read.length;
  stream->next = std::max(stream->next, read.end());
  stream->announced = std::max(stream->announced, stream->next);
  return announce(*stream, object_size);
}

Readahead::Stream* Readahead::find(ByteRange read) {
  for (Stream& stream : streams_) {
    if (stream.read_bytes == 0) continue;
    // What lies between two small files of a pack is less than a unit, and is fetched with them.
    if (read.offset >= stream.next && read.offset - stream.next < kUnitBytes) return &stream;
  }
  for (Stream& stream : streams_) {
    // A stream of one read has no neighbourhood, or random reads would find each other.
    const std::uint64_t disorder = std::min(stream.read_bytes / 4, kDisorderBytesMax);
    if (stream.read_bytes >= kMiB && read.offset + disorder >= stream.next &&
        read.offset <= stream.next + disorder) {
      return &stream;
    }
  }
  return nullptr;
}

Readahead::Stream& Readahead::oldest() {
  return *std::ranges::min_element(streams_, {}, &Stream::last_used);
}

FetchAhead Readahead::announce(Stream& stream, std::uint64_t object_size) const {
  const std::uint64_t window =
      std::min(stream.read_bytes * kWindowPerByte, options_.window_bytes_max);
  const std::uint64_t piece =
      std::max(std::bit_floor(window / options_.pieces_per_window), kPieceBytesMin);
  // Once that adds little, pieces are whole.
  const std::uint64_t alignment = window >= kStepsPerWindow * kPieceBytesMin ? piece : kUnitBytes;
  const std::uint64_t end = std::min(round_up(stream.next + window, alignment), object_size);
  if (end <= stream.announced) return {};
  // Small steps would make small requests. What is next, or the last, does not wait.
  const std::uint64_t step = std::max(window / kStepsPerWindow, piece);
  const bool is_urgent = stream.announced == stream.next || end == object_size;
  if (!is_urgent && end - stream.announced < step) return {};
  const ByteRange range{stream.announced, end - stream.announced};
  stream.announced = end;
  return {range, piece};
}

void Readahead::retract(ByteRange bytes) {
  for (Stream& stream : streams_) {
    if (stream.next <= bytes.offset && bytes.offset < stream.announced) {
      stream.announced = bytes.offset;
    }
  }
}

}  // namespace millrace
