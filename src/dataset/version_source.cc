#include "dataset/version_source.h"

#include <utility>

#include <fmt/format.h>

#include "base/little_endian.h"
#include "dataset/manifest_cursor.h"
#include "dataset/source_work.h"

namespace millrace {

class VersionSourceFile final : public SourceFile {
 public:
  VersionSourceFile(VersionSource& source, ManifestEntry entry) : source_(source), entry_(entry) {}

  Result<std::size_t> read_at(const RequestContext& context, std::uint64_t offset,
                              MutableByteView into) override {
    return source_.read(context, entry_, offset, into);
  }
  // Every read was conditional on the object that the manifest names.
  Result<bool> unchanged(const RequestContext& /*context*/) override { return true; }

 private:
  VersionSource& source_;
  const ManifestEntry entry_;
};

Result<SourceEntry> VersionSource::source_entry(const Manifest& manifest,
                                                const ManifestEntry& entry, std::string path) {
  SourceEntry source{.path = std::move(path),
                     .kind = entry.kind(),
                     .mode = entry.mode(),
                     .mtime_ns = entry.mtime_ns()};
  if (entry.kind() == EntryKind::kFile) {
    source.size = entry.size();
    source.token.resize(sizeof(EntryIndex));
    store_little_endian(reinterpret_cast<std::byte*>(source.token.data()), entry.index());
  }
  if (entry.kind() == EntryKind::kSymlink) {
    MR_ASSIGN_OR_RETURN(source.symlink_target, manifest.symlink_target(entry));
  }
  return source;
}

Result<ManifestEntry> VersionSource::manifest_entry(const Manifest& manifest,
                                                    const SourceEntry& entry) {
  if (entry.token.size() == sizeof(EntryIndex)) {
    const auto index =
        load_little_endian<EntryIndex>(reinterpret_cast<const std::byte*>(entry.token.data()));
    MR_ASSIGN_OR_RETURN(const ManifestEntry found, manifest.entry(index));
    if (found.kind() == EntryKind::kFile && found.size() == entry.size) return found;
  }
  return failure(StatusCode::kInvalidArgument,
                 fmt::format("'{}' is no file of this version", entry.path));
}

Status VersionSource::scan(const RequestContext& context, SourceSink& sink) {
  ManifestCursor cursor(reader_.manifest());
  SourceBatch batch(sink);
  for (;;) {
    MR_RETURN_IF_ERROR(context.check(system_clock()));
    MR_ASSIGN_OR_RETURN(const auto item, cursor.next());
    if (!item) return batch.flush();
    MR_ASSIGN_OR_RETURN(SourceEntry entry,
                        source_entry(reader_.manifest(), item->entry, std::string(item->path)));
    MR_RETURN_IF_ERROR(batch.add(std::move(entry)));
  }
}

Result<std::unique_ptr<SourceFile>> VersionSource::open(const RequestContext& /*context*/,
                                                        const SourceEntry& entry) {
  MR_ASSIGN_OR_RETURN(const ManifestEntry found, manifest_entry(reader_.manifest(), entry));
  return std::make_unique<VersionSourceFile>(*this, found);
}

Result<std::size_t> VersionSource::read(const RequestContext& context, const ManifestEntry& entry,
                                        std::uint64_t offset, MutableByteView into) {
  MutexLock lock(mutex_);
  return window_.read_at(context, entry, offset, into);
}

Status check_pack_content(const VersionReader& reader, const PlannedPack& pack,
                          const BuiltPack& built) {
  for (std::size_t n = 0; n < pack.members.size(); ++n) {
    const SourceEntry& file = pack.members[n].file;
    MR_ASSIGN_OR_RETURN(const ManifestEntry entry,
                        VersionSource::manifest_entry(reader.manifest(), file));
    if (entry.hash().kind != HashKind::kSha256 ||
        entry.hash() == ContentHash::of_content(built.members[n].hash)) {
      continue;
    }
    return {StatusCode::kCorruption, fmt::format("{}: '{}' is damaged: it has another SHA-256",
                                                 reader.ref().text(), file.path)};
  }
  return {};
}

}  // namespace millrace
