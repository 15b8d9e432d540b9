#include "dataset/registration_sink.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/checksum.h"
#include "cache/unit.h"

namespace millrace {
namespace {

constexpr std::uint64_t kHashReadBytes = 4 * kMiB;
static_assert(kHashReadBytes % kUnitBytes == 0, "checksums are of whole units");

NewEntry registered_entry(const SourceEntry& source) {
  return {.path = source.path,
          .kind = source.kind,
          .mode = source.mode,
          .mtime_ns = source.mtime_ns,
          .size = source.kind == EntryKind::kFile ? source.size : 0};
}

Extent whole_object(std::uint32_t object, std::uint64_t bytes) {
  return {.object = object, .stored_bytes = bytes, .logical_bytes = bytes};
}

}  // namespace

Status RegistrationSink::take(std::span<SourceEntry> entries) {
  for (const SourceEntry& entry : entries)
    MR_RETURN_IF_ERROR(add(entry));
  parts_.options.progress.scanned(entries.size());
  return {};
}

Status RegistrationSink::report(SourceProblem problem) {
  problems_.note(std::move(problem));
  return {};
}

Status RegistrationSink::add(const SourceEntry& source) {
  if (parts_.reserved != nullptr) {
    std::string key = parts_.source.key_of(source).value();
    if (source.kind == EntryKind::kDirectory) key += '/';
    MR_ASSIGN_OR_RETURN(std::optional<std::string> fault,
                        parts_.reserved->fault(request(context_), key));
    if (fault) return report({.path = source.path, .reason = *std::move(fault)});
  }
  if (source.kind != EntryKind::kFile || !parts_.options.hash || source.size == 0) {
    return add_pinned(source);
  }
  // One thread at a time may add to a group.
  MutexLock lock(group_mutex_);
  return hashing_.add(
      [this, source](const RequestContext& part) { return add_hashed(part, source); });
}

Result<std::uint32_t> RegistrationSink::add_object(const SourceEntry& source,
                                                   std::span<const std::uint32_t> checksums) {
  return parts_.builder.add_object({.key = parts_.source.key_of(source),
                                    .identity = ObjectIdentity(source.token),
                                    .size = source.size,
                                    .foreign = true,
                                    .store = parts_.store_url,
                                    .checksums = checksums});
}

Status RegistrationSink::add_pinned(const SourceEntry& source) {
  NewEntry entry = registered_entry(source);
  MutexLock lock(mutex_);
  if (entry.kind == EntryKind::kFile) {
    entry.hash = ContentHash::of_identity(ObjectIdentity(source.token));
    if (entry.size > 0) {
      std::uint32_t object = kOwnObject;
      if (entry.hash.kind != HashKind::kEtag) {
        MR_ASSIGN_OR_RETURN(object, add_object(source, {}));
      }
      entry.extents = {whole_object(object, source.size)};
    }
  }
  return parts_.builder.add(entry);
}

Status RegistrationSink::add_hashed(const RequestContext& context, const SourceEntry& source) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<SourceFile> file, parts_.source.open(context, source));
  parts_.options.progress.planned(source.size);
  Sha256 sha;
  std::vector<std::uint32_t> checksums;
  std::vector<std::byte> buffer(std::min(kHashReadBytes, source.size));
  for (std::uint64_t at = 0; at < source.size; at += buffer.size()) {
    const MutableByteView part =
        MutableByteView(buffer).first(std::min<std::uint64_t>(buffer.size(), source.size - at));
    MR_ASSIGN_OR_RETURN(const std::size_t size, file->read_at(request(context), at, part));
    if (size != part.size()) return source_changed(source.path, "it became shorter");
    sha.add(part);
    for (std::size_t unit = 0; unit < part.size(); unit += kUnitBytes)
      checksums.push_back(crc32c(part.subspan(unit, std::min(kUnitBytes, part.size() - unit))));
    parts_.options.progress.stored(part.size());
  }
  NewEntry entry = registered_entry(source);
  entry.hash = ContentHash::of_content(sha.finish());
  MutexLock lock(mutex_);
  MR_ASSIGN_OR_RETURN(const std::uint32_t object, add_object(source, checksums));
  entry.extents = {whole_object(object, source.size)};
  return parts_.builder.add(entry);
}

}  // namespace millrace
