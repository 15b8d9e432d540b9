#include "dataset/registration_sink.h"

#include <algorithm>
#include <functional>
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

// Reads an object from its beginning to its end, once, and hashes it on the way. Whoever wants to
// see some of it reads forward meanwhile. Needs one thread at a time.
class HashedObject {
 public:
  using Read = std::function<Status(std::uint64_t offset, MutableByteView into)>;
  HashedObject(Read read, std::uint64_t size)
      : read_(std::move(read)), size_(size), buffer_(std::min(kHashReadBytes, size)) {}

  // Fills `into` and returns how much there was; offsets never go back.
  Result<std::size_t> read_at(std::uint64_t offset, MutableByteView into) {
    std::size_t filled = 0;
    while (filled < into.size() && offset + filled < size_) {
      const std::uint64_t at = offset + filled;
      while (at >= end_)
        MR_RETURN_IF_ERROR(advance());
      const ByteView there = window_.subspan(at - (end_ - window_.size()));
      const std::size_t length = std::min(there.size(), into.size() - filled);
      std::ranges::copy(there.first(length), into.subspan(filled).begin());
      filled += length;
    }
    return filled;
  }
  // Reads what is left.
  Status finish() {
    while (end_ < size_)
      MR_RETURN_IF_ERROR(advance());
    return {};
  }

  Sha256Digest hash() { return sha_.finish(); }
  const std::vector<std::uint32_t>& checksums() const { return checksums_; }

 private:
  Status advance() {
    const MutableByteView part =
        MutableByteView(buffer_).first(std::min<std::uint64_t>(buffer_.size(), size_ - end_));
    MR_RETURN_IF_ERROR(read_(end_, part));
    sha_.add(part);
    for (std::size_t unit = 0; unit < part.size(); unit += kUnitBytes)
      checksums_.push_back(crc32c(part.subspan(unit, std::min(kUnitBytes, part.size() - unit))));
    window_ = part;
    end_ += part.size();
    return {};
  }

  const Read read_;
  const std::uint64_t size_;
  std::vector<std::byte> buffer_;
  ByteView window_;        // What was read last,
  std::uint64_t end_ = 0;  // and where that ends.
  Sha256 sha_;
  std::vector<std::uint32_t> checksums_;
};

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
  HashedObject object(
      [&](std::uint64_t offset, MutableByteView into) -> Status {
        MR_ASSIGN_OR_RETURN(const std::size_t size, file->read_at(request(context), offset, into));
        if (size != into.size()) return source_changed(source.path, "it became shorter");
        parts_.options.progress.stored(into.size());
        return {};
      },
      source.size);
  if (parts_.shards != nullptr && is_sample_shard(source.path)) {
    const auto read_at = [&](std::uint64_t offset, MutableByteView into) {
      return object.read_at(offset, into);
    };
    MR_RETURN_IF_ERROR(parts_.shards->read(source.path, read_at, source.size));
  }
  MR_RETURN_IF_ERROR(object.finish());
  NewEntry entry = registered_entry(source);
  entry.hash = ContentHash::of_content(object.hash());
  MutexLock lock(mutex_);
  MR_ASSIGN_OR_RETURN(const std::uint32_t number, add_object(source, object.checksums()));
  entry.extents = {whole_object(number, source.size)};
  return parts_.builder.add(entry);
}

}  // namespace millrace
