#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "dataset/content_hash.h"
#include "dataset/entry_order.h"
#include "dataset/manifest_format.h"
#include "dataset/manifest_page_file.h"
#include "dataset/manifest_spool.h"
#include "objectstore/object.h"
#include "platform/digest.h"

namespace millrace {

// An entry to be written.
struct NewEntry {
  std::string path = {};  // "" for the root.
  EntryKind kind = EntryKind::kFile;
  std::optional<std::uint16_t> mode = {};
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;  // Of files only.
  ContentHash hash = {};   // Of files only.
  std::string symlink_target = {};
  // None for an empty file. kOwnObject stands alone, with all of the file, and needs a kEtag hash.
  std::vector<Extent> extents = {};
};

// An object that extents point to.
struct NewObject {
  ObjectKey key = {};
  ObjectIdentity identity = {};
  std::uint64_t size = 0;
  bool foreign = false;  // Registered, not ours: never deleted by us.
  // The URL of another store, for foreign ones only; empty: the store of the manifest.
  std::string store = {};
  // One for each unit (cache/unit.h), or none at all.
  std::span<const std::uint32_t> checksums = {};
};

struct ManifestSummary {
  Sha256Digest content_digest{};
  Sha256Digest layout_digest{};
  std::uint64_t file_bytes = 0;
  ManifestTotals totals;
};

// kInvalidArgument when an entry is none that can be written, whatever stands around it.
Status check_new_entry(const NewEntry& entry);

// Writes a manifest from entries that come in its order. Memory is bounded but for 8 bytes per
// child of the largest directory.
//
// 1. Entry n is record n. Each is written once, when it comes, and never changed.
// 2. queue_ holds the directories whose children have not come yet, in the order in which the
//    groups of children come: the first of them is the next parent.
// 3. Directory d of the file has its children between the d-th and the next number of directories_.
//
// Lifecycle: objects before the entries that use them; finish() once. After a failure it is
// useless, and leaves no file. Needs one thread at a time.
class ManifestWriter {
 public:
  // The file appears at `path` at the end; temporary files without names live in `scratch`.
  static Result<std::unique_ptr<ManifestWriter>> create(const std::string& path,
                                                        const std::string& scratch,
                                                        std::string prefix,
                                                        const std::string& prefix_store = {});

  // Returns the object's number. kResourceExhausted when it lies in one store too many.
  Result<std::uint32_t> add_object(const NewObject& object);
  // kInvalidArgument when it does not come after the last one, or its directory did not come. The
  // root may be left out.
  Status add(const NewEntry& entry);
  Result<ManifestSummary> finish();

 private:
  ManifestWriter(std::unique_ptr<ManifestPageFile> file, const std::string& scratch,
                 std::string prefix);
  Status check_place(std::string_view path);
  Status move_to_parent(std::string_view path);
  Status next_parent();
  Status end_siblings();
  Status begin_children();
  Status write(const NewEntry& entry);
  Status place_content(const NewEntry& entry, EntryRecord& record);
  Status check_extent(const Extent& extent, std::string_view path);
  void count(const NewEntry& entry);
  Result<std::uint32_t> store_number(const std::string& url);
  Status append_u32(ManifestSpool& spool, std::uint32_t value);

  std::unique_ptr<ManifestPageFile> file_;
  ManifestHeader header_;
  Sha256 content_;

  ManifestSpool directories_;
  ManifestSpool slots_;
  ManifestSpool names_;
  ManifestSpool extents_;
  ManifestSpool objects_;
  ManifestSpool texts_;
  ManifestSpool checksums_;

  ManifestSpool queue_;
  ManifestSpoolReader queue_reader_;
  std::optional<std::string> parent_;  // Whose children come now.
  EntryIndex parent_index_ = 0;
  std::vector<NameSlot> siblings_;
  std::string last_path_;
  // The object of the last extent: neighbours mostly share a pack.
  std::optional<std::pair<std::uint32_t, std::uint64_t>> object_size_;
};

}  // namespace millrace
