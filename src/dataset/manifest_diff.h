#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "dataset/manifest.h"

namespace millrace {

enum class ManifestChange : std::uint8_t { kAdded, kRemoved, kChanged };

// An entry that one of two manifests has, or both have differently.
struct ManifestDifference {
  ManifestChange change = ManifestChange::kAdded;
  std::string_view path;  // Valid during the call.
  // Nothing where it is not.
  std::optional<ManifestEntry> before;
  std::optional<ManifestEntry> after;
};

struct ManifestDiffTotals {
  struct Count {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;  // Of files.
    bool operator==(const Count&) const = default;
  };
  Count added;
  Count removed;
  // `bytes` are those of the later files.
  Count changed;
  bool operator==(const ManifestDiffTotals&) const = default;
};

// Takes differences as they are found, in the order of entries. A failure ends the comparison.
using ManifestDiffSink = std::function<Status(const ManifestDifference&)>;

// Compares two manifests by reading each once, in little memory. An entry counts as changed when
// kind, mode, size, target or hash differ; times and places do not count. Two kinds of hash cannot
// be compared, so they differ. Fails when a manifest cannot be read, or with what the sink says.
Result<ManifestDiffTotals> diff_manifests(const Manifest& before, const Manifest& after,
                                          const ManifestDiffSink& sink);

}  // namespace millrace
