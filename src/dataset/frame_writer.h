#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "platform/digest.h"

namespace millrace {

// What whoever wants to read a manifest from the store has to know of it.
struct FramesSummary {
  std::uint64_t framed_bytes = 0;    // Of the whole object.
  std::uint64_t index_bytes = 0;     // Of its end, which is read first.
  std::uint64_t manifest_bytes = 0;  // Not compressed.
  Sha256Digest layout_digest{};      // Of the manifest, not compressed.
};

// Writes the manifest at `path` as it goes to the store, into the file `frames_path`, which is
// replaced. Needs little memory. Every page is checked on the way: a damaged manifest is
// kCorruption, and after any failure no file is left.
Result<FramesSummary> write_frames(const std::string& path, const std::string& frames_path);

}  // namespace millrace
