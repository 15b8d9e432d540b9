#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "dataset/manifest.h"
#include "dataset/manifest_cursor.h"
#include "dataset/source_tree.h"
#include "platform/digest.h"

namespace millrace {

// The version that a publish takes content from: what it has already is not uploaded again.
//
// A file may be taken over when a file of the base has the same SHA-256: the one at the same path,
// whatever its size, or any other one from kShareBytesMin on. (Smaller ones are not shared between
// paths: labels of many samples are alike, and each must be in the packs of its samples.)
//
// Asked for files in the order of the manifest. Needs one thread at a time; the base outlives it.
class PublishBase {
 public:
  static constexpr std::uint64_t kShareBytesMin = 64 * kKiB;
  // Files of the base that are found by content: 24 bytes of memory each.
  static constexpr std::size_t kIndexedFilesMax = 16'000'000;

  // Reads the whole manifest once.
  static Result<std::unique_ptr<PublishBase>> open(const Manifest& base);

  // The file of the base at this path. Paths are asked for in order, each once.
  Result<std::optional<ManifestEntry>> same_path(std::string_view path);
  // Whether it is worth knowing the hash of a file of this size.
  bool may_have(const std::optional<ManifestEntry>& same_path, std::uint64_t size) const;
  // The entry of the base with this content, the one at the same path first.
  Result<std::optional<EntryIndex>> find(const std::optional<ManifestEntry>& same_path,
                                         std::uint64_t size, const Sha256Digest& hash) const;

 private:
  struct Indexed {
    std::uint64_t size = 0;
    std::uint64_t hash_begin = 0;
    EntryIndex entry = 0;

    auto operator<=>(const Indexed&) const = default;
  };
  explicit PublishBase(const Manifest& base) : base_(base), cursor_(base) {}
  Status build_index();
  Status next();

  const Manifest& base_;
  std::vector<Indexed> index_;  // Sorted.
  ManifestCursor cursor_;
  std::optional<ManifestEntry> entry_;  // Where the cursor stands; nothing at the end.
  std::string path_;
  bool started_ = false;
};

}  // namespace millrace
