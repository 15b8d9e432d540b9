#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/manifest.h"

namespace millrace {

// A pack, and how much of it is needed.
struct TalliedPack {
  std::uint64_t bytes = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t members = 0;
  // Whether all that is needed of it can be moved elsewhere.
  bool movable = true;
  // One for each block of the tar: whether content begins there.
  std::vector<bool> begins = {};

  bool thin() const { return movable && members > 0 && live_bytes < bytes / 2; }
};

// Counts how much of packs is needed.
//
// Invariants:
//  1. A pack is known by its key and a member by its offset: one that several versions share, or
//     several files, counts once. It counts with the header and the zeros that it has in a tar.
//  2. A pack is movable while every file in it is one extent, has a SHA-256, and belongs to a
//     version that can be laid out anew.
//  3. Memory is bounded, by kPacksMax packs and a bit for each block of theirs. When there are more
//     the rest is for the next tally, which begins where this one ends.
//
// Lifecycle: add all packs, count all manifests, then ask. Thread-compatible.
class PackTally {
 public:
  static constexpr std::size_t kPacksMax = 2048;
  // What is larger is no pack of ours.
  static constexpr std::uint64_t kPackBytesMax = 256 * kMiB;
  // How many members the packs of one answer have together, but for a single pack with more.
  static constexpr std::uint64_t kMembersMax = 2'000'000;

  // Only packs behind the key `after`.
  explicit PackTally(std::string after) : after_(std::move(after)) {}

  void add(const std::string& key, std::uint64_t bytes);
  // Whether there is any pack to count.
  bool empty() const { return packs_.empty(); }
  // Counts what a manifest names of the packs; reads all of it, if there is anything.
  Status count(const Manifest& manifest, bool movable);

  // The packs of which less than half is needed, with as many members as are allowed.
  std::map<std::string, const TalliedPack*> thin();
  // Where the next tally begins; nothing when this was the last. After thin().
  const std::optional<std::string>& next() const { return next_; }

 private:
  const std::string after_;
  std::map<std::string, TalliedPack> packs_;
  std::optional<std::string> next_;
};

}  // namespace millrace
