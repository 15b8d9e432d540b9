#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "dataset/manifest.h"

namespace millrace {

// Some neighbouring entries, with names, one after the other: what readdir wants. Must not outlive
// the manifest. Needs one thread at a time.
class ChildCursor {
 public:
  struct Child {
    ManifestEntry entry;
    std::string_view name;
  };

  ChildCursor(const Manifest& manifest, ChildRange range)
      : manifest_(&manifest), next_(range.first), end_(range.end) {}

  // Nothing at the end. After a failure the next call tries the same one again.
  Result<std::optional<Child>> next();

 private:
  const Manifest* manifest_;
  EntryIndex next_;
  EntryIndex end_;
};

// All entries of a manifest with their paths, in its order. Must not outlive the manifest. Needs
// one thread at a time.
class ManifestCursor {
 public:
  struct Item {
    ManifestEntry entry;
    std::string_view path;  // Valid until the next call.
  };

  explicit ManifestCursor(const Manifest& manifest) : manifest_(&manifest) {}

  // Nothing at the end. After a failure the next call tries the same one again.
  Result<std::optional<Item>> next();

 private:
  const Manifest* manifest_;
  EntryIndex next_ = 0;
  std::optional<EntryIndex> parent_;
  std::string path_;
  std::size_t directory_bytes_ = 0;  // Of the parent's path, with its slash.
};

}  // namespace millrace
