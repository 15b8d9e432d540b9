#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace millrace {

// How many frames to fetch where one is missing. Who reads on where the last fetch ended gets twice
// as many as before. Several streams are told apart, since a scan walks through entries and names
// at the same time. Needs one thread at a time.
class FrameReadahead {
 public:
  static constexpr std::uint64_t kFramesMax = 64;

  // For a miss at `frame`.
  std::uint64_t window(std::uint64_t frame) const {
    const auto stream = std::ranges::find(streams_, frame, &Stream::next);
    return stream == streams_.end() ? 1 : std::min(stream->frames * 2, kFramesMax);
  }
  // `frames` have been fetched from `frame` on.
  void fetched(std::uint64_t frame, std::uint64_t frames) {
    auto stream = std::ranges::find(streams_, frame, &Stream::next);
    if (stream == streams_.end()) stream = streams_.begin() + (oldest_++ % streams_.size());
    *stream = {.next = frame + frames, .frames = frames};
  }

 private:
  struct Stream {
    std::uint64_t next = UINT64_MAX;
    std::uint64_t frames = 0;
  };
  std::array<Stream, 8> streams_;
  std::size_t oldest_ = 0;
};

}  // namespace millrace
