#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cache/object_version.h"
#include "dataset/content_hash.h"
#include "dataset/entry_order.h"
#include "dataset/manifest_format.h"
#include "dataset/manifest_pages.h"
#include "platform/digest.h"

namespace millrace {

// A directory, file or symlink of a version: what getattr wants. A plain value.
class ManifestEntry {
 public:
  EntryIndex index() const { return index_; }
  EntryIndex parent() const { return record_.parent; }  // The root is its own.
  EntryKind kind() const { return record_.kind; }
  // The 12 permission bits; nothing when nobody knew them.
  std::optional<std::uint16_t> mode() const { return record_.mode; }
  std::int64_t mtime_ns() const { return record_.mtime_ns; }
  // Of a symlink: the length of its target. Of a directory: 0.
  std::uint64_t size() const { return record_.size; }
  const ContentHash& hash() const { return record_.hash; }

 private:
  friend class Manifest;
  ManifestEntry(EntryIndex index, const EntryRecord& record) : index_(index), record_(record) {}

  EntryIndex index_;
  EntryRecord record_;
};

// The entries [first, end): all children of one directory, in the order of their names.
struct ChildRange {
  EntryIndex first = 0;
  EntryIndex end = 0;
  // About where their names lie: a hint that was not checked.
  std::uint64_t first_name = 0;
  std::uint64_t name_bytes = 0;

  std::uint32_t count() const { return end - first; }
  bool operator==(const ChildRange&) const = default;
};

// An object that holds content of the version.
struct ManifestObject {
  ObjectKey key;
  ObjectIdentity identity;
  std::uint64_t size = 0;
  bool foreign = false;
  // The URL of its store; empty for the store that the manifest is in. Bytes of the manifest: who
  // opens it judges them.
  std::string store = {};
  // One for each unit; nothing when they are not known.
  std::shared_ptr<const UnitChecksums> checksums;
};

// The manifest of one version, read where it lies. Opening costs header and page table; after that
// only what is touched is read, and checked at first touch.
//
// Nothing here trusts the file: bytes that fail a check, or point where they must not, are
// kCorruption with the name of the file. A failure of one call leaves the others as they are, and
// may pass (the store that the pages come from was not reachable).
//
// Safe from any thread, without locks once a page was touched. Texts live as long as the manifest.
class Manifest {
 public:
  static Result<std::unique_ptr<Manifest>> open(const std::string& path);
  explicit Manifest(std::unique_ptr<ManifestPages> pages) : pages_(std::move(pages)) {}

  const ManifestTotals& totals() const { return header().totals; }
  const Sha256Digest& content_digest() const { return header().content_digest; }
  const std::string& prefix() const { return header().prefix; }
  // The URL of the store that the prefix is in; empty for that of the manifest.
  std::string_view prefix_store() const { return header().store(header().prefix_store); }
  std::uint32_t entries() const { return static_cast<std::uint32_t>(totals().entries()); }
  std::uint32_t objects() const {
    return static_cast<std::uint32_t>(header().bytes(ManifestSection::kObjects) /
                                      kObjectRecordBytes);
  }
  // Reads the whole file.
  Result<Sha256Digest> layout_digest() const;
  const ManifestPages& pages() const { return *pages_; }

  static constexpr EntryIndex root() { return 0; }
  // kNotFound when there are not so many.
  Result<ManifestEntry> entry(EntryIndex index) const;
  // Always a name that an entry can have; "" for the root.
  Result<std::string_view> name(const ManifestEntry& entry) const;
  Result<std::string> path_of(EntryIndex index) const;
  // kInvalidArgument unless it is a symlink.
  Result<std::string_view> symlink_target(const ManifestEntry& entry) const;

  // Empty when the entry is no directory.
  Result<ChildRange> children(const ManifestEntry& entry) const;
  // Nothing when there is no such child, or `parent` is no directory.
  Result<std::optional<EntryIndex>> find(EntryIndex parent, std::string_view name) const;
  // From the root, following no symlinks. "" is the root; nothing when there is no such path.
  Result<std::optional<EntryIndex>> resolve(std::string_view path) const;

  // Where the content lies, from its first to its last byte. Empty for what has none. Each lies
  // within its object. kUnsupported for a codec that we do not know.
  Result<std::vector<Extent>> extents(const ManifestEntry& entry) const;
  Result<ManifestObject> object(std::uint32_t number) const;
  // The object of an extent of this entry, which may be one without a number (kOwnObject).
  Result<ManifestObject> object_of(const ManifestEntry& entry, const Extent& extent) const;

 private:
  const ManifestHeader& header() const { return pages_->header(); }
  // As it stands in the file, of any bytes.
  Result<std::string_view> raw_name(EntryIndex index) const;
  Result<NameSlot> slot(std::uint64_t number) const;
  Result<std::uint64_t> first_slot(ChildRange children, std::uint64_t hash) const;
  void preload_slots(std::uint64_t first, std::uint64_t last) const;
  void preload_name(ChildRange children, EntryIndex child) const;
  Result<std::optional<EntryIndex>> find_sorted(ChildRange children, std::string_view name) const;
  Result<std::optional<EntryIndex>> find_hashed(ChildRange children, std::string_view name) const;
  Result<ObjectRecord> object_record(std::uint32_t number) const;
  Result<std::vector<Extent>> listed_extents(const EntryRecord& record) const;
  Status check_extent(const Extent& extent) const;
  Result<ManifestObject> own_object(const ManifestEntry& entry) const;
  std::unexpected<Status> wrong(std::string_view what, std::uint64_t number,
                                std::string_view why) const;

  std::unique_ptr<ManifestPages> pages_;
};

}  // namespace millrace
