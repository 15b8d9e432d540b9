#include "dataset/manifest.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/file_name.h"

namespace millrace {

Result<std::unique_ptr<Manifest>> Manifest::open(const std::string& path) {
  MR_ASSIGN_OR_RETURN(auto pages, open_manifest_file(path));
  return std::make_unique<Manifest>(std::move(pages));
}

std::unexpected<Status> Manifest::wrong(std::string_view what, std::uint64_t number,
                                        std::string_view why) const {
  return failure(StatusCode::kCorruption,
                 fmt::format("manifest '{}': {} {}: {}", pages_->path(), what, number, why));
}

Result<Sha256Digest> Manifest::layout_digest() const {
  Sha256 sha;
  for (std::uint64_t page = 0; page < header().pages; ++page) {
    MR_ASSIGN_OR_RETURN(const ByteView bytes, pages_->page(page));
    sha.add(bytes);
  }
  return sha.finish();
}

Result<ManifestEntry> Manifest::entry(EntryIndex index) const {
  if (index >= entries()) {
    return failure(StatusCode::kNotFound, fmt::format("manifest '{}' has {} entries, none {}",
                                                      pages_->path(), entries(), index));
  }
  MR_ASSIGN_OR_RETURN(
      const ByteView bytes,
      pages_->view(ManifestSection::kEntries, std::uint64_t{index} * kEntryBytes, kEntryBytes));
  auto record = decode_entry(bytes);
  if (!record) return wrong("entry", index, record.error().message());
  const bool is_root = index == 0;
  if (is_root ? record->kind != EntryKind::kDirectory || record->name_bytes != 0
              : record->parent >= index || record->name_bytes == 0) {
    return wrong("entry", index, "it stands where it cannot be");
  }
  return ManifestEntry(index, *record);
}

Result<std::string_view> Manifest::name(const ManifestEntry& entry) const {
  const EntryRecord& record = entry.record_;
  MR_ASSIGN_OR_RETURN(const ByteView bytes,
                      pages_->view(ManifestSection::kNames, record.name_offset, record.name_bytes));
  const std::string_view name = as_text(bytes);
  if (name.empty()) return name;  // Of the root: entry() lets no other pass.
  if (const auto fault = file_name_fault(name)) return wrong("entry", entry.index(), *fault);
  return name;
}

Result<std::string_view> Manifest::raw_name(EntryIndex index) const {
  MR_ASSIGN_OR_RETURN(const ByteView bytes,
                      pages_->view(ManifestSection::kEntries, std::uint64_t{index} * kEntryBytes,
                                   sizeof(std::uint64_t)));
  const auto place = decode_name_place(bytes);
  MR_ASSIGN_OR_RETURN(const ByteView name,
                      pages_->view(ManifestSection::kNames, place.offset, place.bytes));
  return as_text(name);
}

Result<std::string> Manifest::path_of(EntryIndex index) const {
  // Written from its end: parents come after their children here.
  std::array<char, kEntryPathBytesMax> path;
  std::size_t begin = path.size();
  // Ends, because every parent is lower than its child.
  for (EntryIndex at = index; at != root();) {
    MR_ASSIGN_OR_RETURN(const ManifestEntry found, entry(at));
    MR_ASSIGN_OR_RETURN(const std::string_view name, this->name(found));
    const std::size_t slash = begin == path.size() ? 0 : 1;
    if (name.size() + slash > begin) return wrong("entry", index, "its path is too long");
    if (slash != 0) path[--begin] = '/';
    begin -= name.size();
    std::ranges::copy(name, path.data() + begin);
    at = found.parent();
  }
  return std::string(path.data() + begin, path.size() - begin);
}

Result<std::string_view> Manifest::symlink_target(const ManifestEntry& entry) const {
  if (entry.kind() != EntryKind::kSymlink) {
    return failure(StatusCode::kInvalidArgument,
                   fmt::format("entry {} is no symlink", entry.index()));
  }
  if (entry.size() < 1 || entry.size() > kSymlinkTargetBytesMax) {
    return wrong("entry", entry.index(), "its target has no length that a target has");
  }
  MR_ASSIGN_OR_RETURN(const ByteView target,
                      pages_->view(ManifestSection::kTexts, entry.record_.offset, entry.size()));
  if (as_text(target).contains('\0')) return wrong("entry", entry.index(), "its target has a NUL");
  return as_text(target);
}

Result<ChildRange> Manifest::children(const ManifestEntry& entry) const {
  if (entry.kind() != EntryKind::kDirectory) return ChildRange{};
  MR_ASSIGN_OR_RETURN(
      const ByteView bytes,
      pages_->view(ManifestSection::kDirectories,
                   std::uint64_t{entry.record_.object} * kDirectoryBytes, 2 * kDirectoryBytes));
  const DirectoryRecord begin = decode_directory(bytes.data());
  const DirectoryRecord end = decode_directory(bytes.data() + kDirectoryBytes);
  const ChildRange range{.first = begin.first_child,
                         .end = end.first_child,
                         .first_name = begin.first_name,
                         .name_bytes = end.first_name - begin.first_name};
  if (range.first > range.end || range.end > entries() || range.first <= entry.index()) {
    return wrong("entry", entry.index(), "its children are where they cannot be");
  }
  return range;
}

}  // namespace millrace
