#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "dataset/content_hash.h"
#include "dataset/entry_order.h"
#include "platform/digest.h"

// The bytes of a manifest (docs/formats/manifest.md). Decoders check that numbers are possible
// where they stand; what they point to is checked by who follows them.
namespace millrace {

inline constexpr std::uint64_t kManifestPageBytes = 64 * kKiB;
inline constexpr std::size_t kManifestPrefixBytesMax = 1024;
// URLs of stores: all of them fit into the header page.
inline constexpr std::size_t kManifestStoresMax = 15;
inline constexpr std::size_t kManifestStoreBytesMax = 4096;

// The number of an entry in its manifest, which is also its inode number.
using EntryIndex = std::uint32_t;

// In the order of the file. The header page stands before the first.
enum class ManifestSection : std::uint8_t {
  kEntries,
  kDirectories,  // Where the children of each directory start, and at the end where they end.
  kSlots,        // Children of each directory by the hash of their names.
  kNames,
  kExtents,  // Of files that do not have exactly one.
  kObjects,
  kTexts,  // Keys, identities, symlink targets.
  kChecksums,
  kPageTable,
};
inline constexpr std::size_t kManifestSections = 9;

struct ManifestTotals {
  std::uint64_t files = 0;
  std::uint64_t directories = 0;  // With the root.
  std::uint64_t symlinks = 0;
  std::uint64_t logical_bytes = 0;
  // Of all objects that the manifest knows: what the version holds on to in the store.
  std::uint64_t stored_bytes = 0;

  std::uint64_t entries() const { return files + directories + symlinks; }
  bool operator==(const ManifestTotals&) const = default;
};

struct ManifestHeader {
  ManifestTotals totals;
  // How many bytes of each section mean something, and where it starts. A section starts on a page.
  std::array<std::uint64_t, kManifestSections> section_bytes{};
  std::array<std::uint64_t, kManifestSections> section_offsets{};
  std::uint64_t pages = 0;  // Of the whole file.
  std::uint32_t page_table_checksum = 0;
  Sha256Digest content_digest{};
  // Registered objects without a record of their own have the key prefix + path.
  std::string prefix;
  // URLs of other stores that objects lie in. Number n of them is stores[n - 1]; 0 is the store
  // that the manifest itself is in.
  std::vector<std::string> stores;
  std::uint32_t prefix_store = 0;  // The store of objects without a record.

  std::uint64_t bytes(ManifestSection section) const { return section_bytes[std::size_t(section)]; }
  std::uint64_t offset(ManifestSection section) const {
    return section_offsets[std::size_t(section)];
  }
  std::uint64_t file_bytes() const { return pages * kManifestPageBytes; }
  // `number` is one that the header has. Empty for 0.
  std::string_view store(std::uint32_t number) const;
  // Fills offsets and pages, and the size of the page table, from the sizes of the other sections.
  void lay_out();
};

// A whole page.
std::vector<std::byte> encode_manifest_header(const ManifestHeader& header);
// `page` is the first page of the file, which has `file_bytes`. kUnsupported for another format,
// kCorruption for anything that an encoder does not write.
Result<ManifestHeader> decode_manifest_header(ByteView page, std::uint64_t file_bytes);

// How an entry's content is found.
enum class ExtentForm : std::uint8_t {
  kNone = 0,    // No content: directories, symlinks, empty files.
  kInline = 1,  // One stretch of one object, as it is: `object` and `offset`.
  kList = 2,    // `object` extents of the extents section from number `offset`.
  kOwn = 3,     // All of the object prefix + path, whose identity is the hash.
};

inline constexpr std::size_t kEntryBytes = 76;

// An entry as it stands in the file.
struct EntryRecord {
  std::uint64_t name_offset = 0;  // In the names section.
  std::uint8_t name_bytes = 0;    // 0 for the root only.
  EntryKind kind = EntryKind::kFile;
  ExtentForm form = ExtentForm::kNone;
  std::optional<std::uint16_t> mode = {};
  EntryIndex parent = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t size = 0;  // Of a symlink: the length of its target.
  // Of a file: see ExtentForm. Of a directory: its number among the directories. Of a symlink: 0.
  std::uint32_t object = 0;
  // Of a file: see ExtentForm. Of a symlink: where its target stands in the texts section.
  std::uint64_t offset = 0;
  ContentHash hash = {};
};
void encode_entry(const EntryRecord& record, std::byte* out);
// `bytes` are kEntryBytes. kCorruption when kinds, modes or lengths are none that exist.
Result<EntryRecord> decode_entry(ByteView bytes);

// The part of it that a search for names needs. `bytes` are the first 8 of an entry.
struct NamePlace {
  std::uint64_t offset = 0;
  std::uint8_t bytes = 0;
};
NamePlace decode_name_place(ByteView bytes);

// How the bytes of an extent are stored. Others than kNone are for later.
enum class ExtentCodec : std::uint32_t { kNone = 0 };

// A stretch of an object that holds a stretch of a file.
struct Extent {
  std::uint32_t object = 0;
  ExtentCodec codec = ExtentCodec::kNone;
  std::uint64_t offset = 0;
  std::uint64_t stored_bytes = 0;
  std::uint64_t logical_bytes = 0;

  bool operator==(const Extent&) const = default;
};
// Stands for the object prefix + path of the very entry.
inline constexpr std::uint32_t kOwnObject = UINT32_MAX;
inline constexpr std::size_t kExtentBytes = 32;
void encode_extent(const Extent& extent, std::byte* out);
// kUnsupported for a codec that we do not know.
Result<Extent> decode_extent(ByteView bytes);

inline constexpr std::size_t kObjectRecordBytes = 40;
inline constexpr std::size_t kObjectIdentityBytesMax = 4096;
struct ObjectRecord {
  std::uint64_t texts_offset = 0;  // Key, then identity.
  std::uint32_t key_bytes = 0;
  std::uint32_t identity_bytes = 0;
  std::uint64_t size = 0;
  // Of another store (ManifestHeader::stores): always foreign.
  std::uint32_t store = 0;
  bool foreign = false;
  // Number of the checksum of its first unit; nothing when it has none.
  std::optional<std::uint64_t> first_checksum = {};
};
void encode_object(const ObjectRecord& record, std::byte* out);
Result<ObjectRecord> decode_object(ByteView bytes);

// A child in the slots of its directory, which are sorted by hash, then child.
struct NameSlot {
  std::uint32_t hash = 0;
  EntryIndex child = 0;
  auto operator<=>(const NameSlot&) const = default;
};
inline constexpr std::size_t kNameSlotBytes = 8;
// Spreads evenly over all 32 bits, which the search in slots makes use of.
std::uint32_t name_hash(std::string_view name);

// Where the children of a directory start. They end where those of the next directory start.
struct DirectoryRecord {
  EntryIndex first_child = 0;
  std::uint64_t first_name = 0;  // Where its children's names start in their section.
};
inline constexpr std::size_t kDirectoryBytes = 12;
void encode_directory(const DirectoryRecord& record, std::byte* out);
DirectoryRecord decode_directory(const std::byte* bytes);

inline constexpr std::size_t kUnitChecksumBytes = 4;
inline constexpr std::size_t kPageChecksumBytes = 4;

}  // namespace millrace
