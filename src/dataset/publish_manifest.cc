#include "dataset/publish_manifest.h"

#include <utility>

#include <fmt/format.h>

namespace millrace {

PublishManifest::PublishManifest(const Sources& sources, std::unique_ptr<ManifestBuilder> builder)
    : sources_(sources), builder_(std::move(builder)), object_paths_(sources.object_paths) {}

Result<ManifestSummary> PublishManifest::write(const Sources& sources, const std::string& path,
                                               const std::string& scratch) {
  MR_ASSIGN_OR_RETURN(std::unique_ptr<ManifestBuilder> builder,
                      ManifestBuilder::create(
                          {.path = path, .scratch = scratch, .arrival = EntryArrival::kSorted}));
  PublishManifest manifest(sources, std::move(builder));
  MR_ASSIGN_OR_RETURN(manifest.next_object_path_, manifest.object_paths_.next());
  PublishedEntries::Reader reader(sources.entries);
  for (;;) {
    MR_ASSIGN_OR_RETURN(const std::optional<PublishedEntry> entry, reader.next());
    if (!entry) break;
    MR_RETURN_IF_ERROR(manifest.add(*entry));
  }
  return manifest.builder_->finish();
}

Status PublishManifest::add(const PublishedEntry& published) {
  const SourceEntry& source = published.source;
  NewEntry entry{.path = source.path,
                 .kind = source.kind,
                 .mode = source.mode,
                 .mtime_ns = source.mtime_ns,
                 .size = source.kind == EntryKind::kFile ? source.size : 0,
                 .symlink_target = source.symlink_target};
  if (source.kind == EntryKind::kFile) {
    if (published.reused) {
      MR_RETURN_IF_ERROR(take_over(published.base, *published.reused, entry));
    } else {
      MR_RETURN_IF_ERROR(find_stored(source, entry));
    }
    if (sources_.known != nullptr && entry.hash.kind == HashKind::kSha256) {
      MR_RETURN_IF_ERROR(sources_.known->add(source, entry.hash.bytes));
    }
  }
  return builder_->add(entry);
}

Status PublishManifest::take_over(std::uint32_t number, EntryIndex reused, NewEntry& entry) {
  const Manifest& base = *sources_.bases.at(number);
  MR_ASSIGN_OR_RETURN(const ManifestEntry from, base.entry(reused));
  entry.hash = from.hash();
  MR_ASSIGN_OR_RETURN(entry.extents, base.extents(from));
  for (Extent& extent : entry.extents) {
    const auto known = base_objects_.find({number, extent.object});
    if (known != base_objects_.end()) {
      extent.object = known->second;
      continue;
    }
    MR_ASSIGN_OR_RETURN(const ManifestObject object, base.object_of(from, extent));
    MR_ASSIGN_OR_RETURN(
        const std::uint32_t added,
        builder_->add_object({.key = object.key,
                              .identity = object.identity,
                              .size = object.size,
                              .foreign = object.foreign,
                              .store = object.store,
                              .checksums = object.checksums
                                               ? std::span<const std::uint32_t>(*object.checksums)
                                               : std::span<const std::uint32_t>()}));
    // One without a number is this file's alone.
    if (extent.object != kOwnObject) base_objects_.emplace(std::pair(number, extent.object), added);
    extent.object = added;
  }
  return {};
}

Status PublishManifest::find_stored(const SourceEntry& file, NewEntry& entry) {
  if (next_object_path_ && *next_object_path_ == file.path) {
    MR_ASSIGN_OR_RETURN(next_object_path_, object_paths_.next());
    MR_ASSIGN_OR_RETURN(const std::optional<StoredContent> content,
                        sources_.journal.find(sources_.objects.at(objects_++)));
    if (!content) return {StatusCode::kInternal, "the journal lost an object"};
    MR_ASSIGN_OR_RETURN(const std::uint32_t number, add_object(*content));
    return place(*content, 0, number, entry);
  }
  if (!pack_ || member_ == pack_->members.size()) MR_RETURN_IF_ERROR(next_pack());
  return place(*pack_, member_++, pack_object_, entry);
}

Status PublishManifest::next_pack() {
  MR_ASSIGN_OR_RETURN(pack_, sources_.journal.find(sources_.packs.at(packs_++)));
  if (!pack_) return {StatusCode::kInternal, "the journal lost a pack"};
  MR_ASSIGN_OR_RETURN(pack_object_, add_object(*pack_));
  member_ = 0;
  return {};
}

Result<std::uint32_t> PublishManifest::add_object(const StoredContent& content) {
  return builder_->add_object({.key = content.key,
                               .identity = content.identity,
                               .size = content.size,
                               .foreign = false,
                               .checksums = content.checksums});
}

Status PublishManifest::place(const StoredContent& content, std::size_t member,
                              std::uint32_t object, NewEntry& entry) {
  if (member >= content.members.size()) {
    return {StatusCode::kInternal,
            fmt::format("'{}' has no place for '{}'", content.key.value(), entry.path)};
  }
  const StoredContent::Member& at = content.members[member];
  entry.hash = at.hash;
  if (entry.size > 0) {
    entry.extents = {{.object = object,
                      .offset = at.content_offset,
                      .stored_bytes = entry.size,
                      .logical_bytes = entry.size}};
  }
  return {};
}

}  // namespace millrace
