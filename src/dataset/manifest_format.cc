#include "dataset/manifest_format.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/checksum.h"
#include "base/little_endian.h"
#include "cache/unit.h"

namespace millrace {
namespace {

constexpr std::string_view kManifestMagic = "MRMANIFE";
constexpr std::uint32_t kManifestFormat = 1;
constexpr std::size_t kHeaderFormatAt = 8;
constexpr std::size_t kHeaderChecksumAt = 12;
constexpr std::size_t kHeaderPageBytesAt = 16;
constexpr std::size_t kHeaderEntryBytesAt = 20;
constexpr std::size_t kHeaderTotalsAt = 24;
constexpr std::size_t kHeaderPagesAt = 64;
constexpr std::size_t kHeaderPageTableChecksumAt = 72;
constexpr std::size_t kHeaderPrefixBytesAt = 76;
constexpr std::size_t kHeaderSectionBytesAt = 80;
constexpr std::size_t kHeaderSectionOffsetsAt = 152;
constexpr std::size_t kHeaderContentDigestAt = 224;
constexpr std::size_t kHeaderPrefixAt = 256;
constexpr std::size_t kHeaderStoresAt = kHeaderPrefixAt + kManifestPrefixBytesMax;
constexpr std::size_t kHeaderPrefixStoreAt = kHeaderStoresAt + 4;
constexpr std::size_t kHeaderStoreTextsAt = kHeaderStoresAt + 8;
static_assert(kHeaderStoreTextsAt + kManifestStoresMax * (4 + kManifestStoreBytesMax) <=
              kManifestPageBytes);
// No section is larger: sums of all of them stay far from where numbers wrap around.
constexpr std::uint64_t kSectionBytesMax = std::uint64_t{1} << 56;

constexpr std::size_t kEntryAttributesAt = 8;
constexpr std::size_t kEntryParentAt = 12;
constexpr std::size_t kEntryMtimeAt = 16;
constexpr std::size_t kEntrySizeAt = 24;
constexpr std::size_t kEntryOffsetAt = 32;
constexpr std::size_t kEntryObjectAt = 40;
constexpr std::size_t kEntryHashAt = 44;
// Name offset and length share a word.
constexpr unsigned kEntryNameBytesShift = 56;
constexpr std::uint64_t kEntryNameOffsetMask = (std::uint64_t{1} << kEntryNameBytesShift) - 1;
// Attributes: mode, whether there is one, kind, form, kind of hash.
constexpr std::uint32_t kModeMask = 07777;
constexpr std::uint32_t kModeKnown = 1U << 12;
constexpr unsigned kKindShift = 16;
constexpr unsigned kFormShift = 20;
constexpr unsigned kHashKindShift = 24;
constexpr std::uint32_t kAttributesKnown =
    kModeMask | kModeKnown | 0xfU << kKindShift | 0xfU << kFormShift | 0xfU << kHashKindShift;

constexpr std::uint32_t kObjectForeign = 1;
constexpr std::uint32_t kObjectHasChecksums = 2;
// A unit has a number of 32 bits.
constexpr std::uint64_t kObjectSizeMax = UINT32_MAX * kUnitBytes;

std::uint32_t manifest_u32(ByteView bytes, std::size_t at) {
  return load_little_endian<std::uint32_t>(bytes.data() + at);
}
std::uint64_t manifest_u64(ByteView bytes, std::size_t at) {
  return load_little_endian<std::uint64_t>(bytes.data() + at);
}

std::uint64_t pages_of(std::uint64_t bytes) {
  return (bytes + kManifestPageBytes - 1) / kManifestPageBytes;
}

std::uint32_t header_checksum(ByteView page) {
  const std::uint32_t before = crc32c(page.first(kHeaderChecksumAt));
  return crc32c(page.subspan(kHeaderChecksumAt + sizeof before), before);
}

std::unexpected<Status> impossible(std::string_view what) {
  return failure(StatusCode::kCorruption, fmt::format("{} that no manifest has", what));
}

// The sizes that follow from the number of entries and directories.
bool sections_are_possible(const ManifestHeader& header) {
  const ManifestTotals& totals = header.totals;
  if (std::ranges::any_of(header.section_bytes,
                          [](std::uint64_t bytes) { return bytes > kSectionBytesMax; })) {
    return false;
  }
  if (totals.directories < 1 || totals.directories > kEntriesMax || totals.files > kEntriesMax ||
      totals.symlinks > kEntriesMax || totals.entries() > kEntriesMax) {
    return false;
  }
  using enum ManifestSection;
  return header.bytes(kEntries) == totals.entries() * kEntryBytes &&
         header.bytes(kDirectories) == (totals.directories + 1) * kDirectoryBytes &&
         header.bytes(kSlots) == totals.entries() * kNameSlotBytes &&
         header.bytes(kExtents) % kExtentBytes == 0 &&
         header.bytes(kObjects) % kObjectRecordBytes == 0 &&
         header.bytes(kObjects) / kObjectRecordBytes < kOwnObject &&
         header.bytes(kChecksums) % kUnitChecksumBytes == 0;
}

// Each is a length (4) and a text.
void encode_stores(const ManifestHeader& header, std::byte* page) {
  store_little_endian(page + kHeaderStoresAt, static_cast<std::uint32_t>(header.stores.size()));
  store_little_endian(page + kHeaderPrefixStoreAt, header.prefix_store);
  std::byte* out = page + kHeaderStoreTextsAt;
  for (const std::string& store : header.stores) {
    store_little_endian(out, static_cast<std::uint32_t>(store.size()));
    out = std::ranges::copy(as_bytes(store), out + 4).out;
  }
}

// False when they are none that an encoder writes.
bool decode_stores(ByteView page, ManifestHeader& header) {
  const std::uint32_t count = manifest_u32(page, kHeaderStoresAt);
  header.prefix_store = manifest_u32(page, kHeaderPrefixStoreAt);
  if (count > kManifestStoresMax || header.prefix_store > count) return false;
  std::size_t at = kHeaderStoreTextsAt;
  for (std::uint32_t number = 0; number < count; ++number) {
    const std::uint32_t bytes = manifest_u32(page, at);
    if (bytes < 1 || bytes > kManifestStoreBytesMax) return false;
    header.stores.emplace_back(as_text(page.subspan(at + 4, bytes)));
    at += 4 + bytes;
  }
  return true;
}

}  // namespace

std::string_view ManifestHeader::store(std::uint32_t number) const {
  return number == 0 ? std::string_view() : std::string_view(stores[number - 1]);
}

void ManifestHeader::lay_out() {
  std::uint64_t page = 1;
  for (std::size_t section = 0; section < kManifestSections; ++section) {
    if (section == std::size_t(ManifestSection::kPageTable)) {
      section_bytes[section] = page * kPageChecksumBytes;
    }
    section_offsets[section] = page * kManifestPageBytes;
    page += pages_of(section_bytes[section]);
  }
  pages = page;
}

std::vector<std::byte> encode_manifest_header(const ManifestHeader& header) {
  std::vector<std::byte> page(kManifestPageBytes);
  std::byte* const out = page.data();
  std::ranges::copy(as_bytes(kManifestMagic), out);
  store_little_endian(out + kHeaderFormatAt, kManifestFormat);
  store_little_endian(out + kHeaderPageBytesAt, static_cast<std::uint32_t>(kManifestPageBytes));
  store_little_endian(out + kHeaderEntryBytesAt, static_cast<std::uint32_t>(kEntryBytes));
  const std::uint64_t totals[] = {header.totals.files, header.totals.directories,
                                  header.totals.symlinks, header.totals.logical_bytes,
                                  header.totals.stored_bytes};
  for (std::size_t i = 0; i < std::size(totals); ++i)
    store_little_endian(out + kHeaderTotalsAt + i * sizeof totals[i], totals[i]);
  store_little_endian(out + kHeaderPagesAt, header.pages);
  store_little_endian(out + kHeaderPageTableChecksumAt, header.page_table_checksum);
  store_little_endian(out + kHeaderPrefixBytesAt, static_cast<std::uint32_t>(header.prefix.size()));
  for (std::size_t i = 0; i < kManifestSections; ++i) {
    store_little_endian(out + kHeaderSectionBytesAt + i * 8, header.section_bytes[i]);
    store_little_endian(out + kHeaderSectionOffsetsAt + i * 8, header.section_offsets[i]);
  }
  std::ranges::copy(header.content_digest, out + kHeaderContentDigestAt);
  std::ranges::copy(as_bytes(header.prefix), out + kHeaderPrefixAt);
  encode_stores(header, out);
  store_little_endian(out + kHeaderChecksumAt, header_checksum(page));
  return page;
}

Result<ManifestHeader> decode_manifest_header(ByteView page, std::uint64_t file_bytes) {
  if (page.size() != kManifestPageBytes) {
    return failure(StatusCode::kCorruption, "it ends inside its header");
  }
  if (as_text(page.first(kManifestMagic.size())) != kManifestMagic) {
    return failure(StatusCode::kCorruption, "it is no manifest");
  }
  // Before the checksum, whose place another format may have moved.
  if (const std::uint32_t format = manifest_u32(page, kHeaderFormatAt); format != kManifestFormat) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("it was written in format {}, this Millrace knows only format {}; "
                               "use a later Millrace",
                               format, kManifestFormat));
  }
  if (manifest_u32(page, kHeaderChecksumAt) != header_checksum(page)) {
    return failure(StatusCode::kCorruption, "its header fails its checksum");
  }
  ManifestHeader header;
  ManifestTotals& totals = header.totals;
  std::uint64_t* const totals_out[] = {&totals.files, &totals.directories, &totals.symlinks,
                                       &totals.logical_bytes, &totals.stored_bytes};
  for (std::size_t i = 0; i < std::size(totals_out); ++i)
    *totals_out[i] = manifest_u64(page, kHeaderTotalsAt + i * 8);
  for (std::size_t i = 0; i < kManifestSections; ++i)
    header.section_bytes[i] = manifest_u64(page, kHeaderSectionBytesAt + i * 8);
  if (manifest_u32(page, kHeaderPageBytesAt) != kManifestPageBytes ||
      manifest_u32(page, kHeaderEntryBytesAt) != kEntryBytes || !sections_are_possible(header)) {
    return impossible("its header holds numbers");
  }
  header.page_table_checksum = manifest_u32(page, kHeaderPageTableChecksumAt);
  std::ranges::copy(page.subspan(kHeaderContentDigestAt, header.content_digest.size()),
                    header.content_digest.begin());
  const std::uint32_t prefix_bytes = manifest_u32(page, kHeaderPrefixBytesAt);
  if (prefix_bytes > kManifestPrefixBytesMax) return impossible("its header has a prefix");
  header.prefix = as_text(page.subspan(kHeaderPrefixAt, prefix_bytes));
  if (!decode_stores(page, header)) return impossible("its header names stores");
  header.lay_out();
  // Everything is where it must be, or the header is not what an encoder writes.
  if (!std::ranges::equal(encode_manifest_header(header), page)) {
    return impossible("its header holds numbers");
  }
  if (header.file_bytes() != file_bytes) {
    return failure(StatusCode::kCorruption, fmt::format("it has {} bytes, its header says {}",
                                                        file_bytes, header.file_bytes()));
  }
  return header;
}

void encode_entry(const EntryRecord& record, std::byte* out) {
  store_little_endian(
      out, record.name_offset | std::uint64_t{record.name_bytes} << kEntryNameBytesShift);
  const std::uint32_t mode = record.mode ? (*record.mode & kModeMask) | kModeKnown : 0;
  store_little_endian(out + kEntryAttributesAt, mode | std::uint32_t(record.kind) << kKindShift |
                                                    std::uint32_t(record.form) << kFormShift |
                                                    std::uint32_t(record.hash.kind)
                                                        << kHashKindShift);
  store_little_endian(out + kEntryParentAt, record.parent);
  store_little_endian(out + kEntryMtimeAt, static_cast<std::uint64_t>(record.mtime_ns));
  store_little_endian(out + kEntrySizeAt, record.size);
  store_little_endian(out + kEntryOffsetAt, record.offset);
  store_little_endian(out + kEntryObjectAt, record.object);
  std::ranges::copy(record.hash.bytes, out + kEntryHashAt);
}

NamePlace decode_name_place(ByteView bytes) {
  const std::uint64_t name = manifest_u64(bytes, 0);
  return {.offset = name & kEntryNameOffsetMask,
          .bytes = static_cast<std::uint8_t>(name >> kEntryNameBytesShift)};
}

Result<EntryRecord> decode_entry(ByteView bytes) {
  const std::uint32_t attributes = manifest_u32(bytes, kEntryAttributesAt);
  const std::uint32_t kind = attributes >> kKindShift & 0xf;
  const std::uint32_t form = attributes >> kFormShift & 0xf;
  const std::uint32_t hash_kind = attributes >> kHashKindShift & 0xf;
  if ((attributes & ~kAttributesKnown) != 0 || kind > std::uint32_t(EntryKind::kSymlink) ||
      form > std::uint32_t(ExtentForm::kOwn) || hash_kind > std::uint32_t(HashKind::kIdentity)) {
    return impossible("it has attributes");
  }
  EntryRecord record;
  const NamePlace name = decode_name_place(bytes);
  record.name_offset = name.offset;
  record.name_bytes = name.bytes;
  record.kind = static_cast<EntryKind>(kind);
  record.form = static_cast<ExtentForm>(form);
  if ((attributes & kModeKnown) != 0) {
    record.mode = static_cast<std::uint16_t>(attributes & kModeMask);
  }
  record.parent = manifest_u32(bytes, kEntryParentAt);
  record.mtime_ns = static_cast<std::int64_t>(manifest_u64(bytes, kEntryMtimeAt));
  record.size = manifest_u64(bytes, kEntrySizeAt);
  record.offset = manifest_u64(bytes, kEntryOffsetAt);
  record.object = manifest_u32(bytes, kEntryObjectAt);
  record.hash.kind = static_cast<HashKind>(hash_kind);
  std::ranges::copy(bytes.subspan(kEntryHashAt, record.hash.bytes.size()),
                    record.hash.bytes.begin());
  const bool has_extents = record.form != ExtentForm::kNone;
  if (has_extents != (record.kind == EntryKind::kFile && record.size > 0)) {
    return impossible("it has extents");
  }
  return record;
}

void encode_extent(const Extent& extent, std::byte* out) {
  store_little_endian(out, extent.object);
  store_little_endian(out + 4, std::uint32_t(extent.codec));
  store_little_endian(out + 8, extent.offset);
  store_little_endian(out + 16, extent.stored_bytes);
  store_little_endian(out + 24, extent.logical_bytes);
}

Result<Extent> decode_extent(ByteView bytes) {
  if (const std::uint32_t codec = manifest_u32(bytes, 4); codec != 0) {
    return failure(StatusCode::kUnsupported,
                   fmt::format("it is stored with codec {}, which this Millrace does not know; use "
                               "a later one",
                               codec));
  }
  const Extent extent{.object = manifest_u32(bytes, 0),
                      .codec = ExtentCodec::kNone,
                      .offset = manifest_u64(bytes, 8),
                      .stored_bytes = manifest_u64(bytes, 16),
                      .logical_bytes = manifest_u64(bytes, 24)};
  if (extent.stored_bytes != extent.logical_bytes || extent.logical_bytes == 0) {
    return impossible("it has an extent");
  }
  return extent;
}

void encode_object(const ObjectRecord& record, std::byte* out) {
  store_little_endian(out, record.texts_offset);
  store_little_endian(out + 8, record.size);
  store_little_endian(out + 16, record.first_checksum.value_or(0));
  store_little_endian(out + 24, record.key_bytes);
  store_little_endian(out + 28, record.identity_bytes);
  store_little_endian(out + 32, (record.foreign ? kObjectForeign : 0) |
                                    (record.first_checksum ? kObjectHasChecksums : 0));
  store_little_endian(out + 36, record.store);
}

Result<ObjectRecord> decode_object(ByteView bytes) {
  ObjectRecord record;
  record.texts_offset = manifest_u64(bytes, 0);
  record.size = manifest_u64(bytes, 8);
  record.key_bytes = manifest_u32(bytes, 24);
  record.identity_bytes = manifest_u32(bytes, 28);
  const std::uint32_t flags = manifest_u32(bytes, 32);
  record.store = manifest_u32(bytes, 36);
  record.foreign = (flags & kObjectForeign) != 0;
  if ((flags & kObjectHasChecksums) != 0) record.first_checksum = manifest_u64(bytes, 16);
  if (flags > (kObjectForeign | kObjectHasChecksums) || record.size > kObjectSizeMax ||
      record.store > kManifestStoresMax || (record.store != 0 && !record.foreign) ||
      record.key_bytes < 1 || record.key_bytes > kKeyBytesMax ||
      record.identity_bytes > kObjectIdentityBytesMax) {
    return impossible("it is an object");
  }
  return record;
}

void encode_directory(const DirectoryRecord& record, std::byte* out) {
  store_little_endian(out, record.first_child);
  store_little_endian(out + 4, record.first_name);
}

DirectoryRecord decode_directory(const std::byte* bytes) {
  return {.first_child = load_little_endian<std::uint32_t>(bytes),
          .first_name = load_little_endian<std::uint64_t>(bytes + 4)};
}

std::uint32_t name_hash(std::string_view name) {
  // A CRC alone keeps differences: numbered names would lie in rows.
  std::uint32_t hash = crc32c(as_bytes(name)) ^ static_cast<std::uint32_t>(name.size());
  hash = (hash ^ hash >> 16) * 0x9e3779b1U;
  hash = (hash ^ hash >> 13) * 0xb5297a4dU;
  return hash ^ hash >> 16;
}

}  // namespace millrace
