#include "dataset/version_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/checksum.h"
#include "cache/unit.h"

namespace millrace {

VersionReader VersionReader::with_window(std::uint64_t window_bytes) const {
  VersionReaderOptions options = options_;
  options.window_bytes = window_bytes;
  return VersionReader(store_, manifest_, ref_, std::move(options), clock_);
}

RequestContext VersionReader::request(const RequestContext& context) const {
  return context.with_deadline(clock_.now() + options_.request_timeout);
}

Result<std::shared_ptr<ObjectStore>> VersionReader::store_of(const ManifestObject& object) const {
  // Owns nothing: the store outlives the reader.
  if (object.store.empty()) return std::shared_ptr<ObjectStore>(std::shared_ptr<void>(), &store_);
  auto other = options_.stores(object.store);
  if (other) return other;
  // What is not there is the store, and not the object.
  const Status& why = other.error();
  const StatusCode code = why == StatusCode::kNotFound ? StatusCode::kUnavailable : why.code();
  return failure(Status(code, why.message())
                     .with_context(fmt::format("{}: its object '{}' in {}", ref_.text(),
                                               object.key.value(), object.store)));
}

Status VersionReader::explain(const Status& status, const ManifestObject& object,
                              const ObjectStore& store) const {
  const std::string what =
      fmt::format("{}: its object '{}' in {}", ref_.text(), object.key.value(), store.describe());
  const bool gone = status == StatusCode::kNotFound;
  if (!gone && status != StatusCode::kPreconditionFailed) return status.with_context(what);
  return {StatusCode::kPreconditionFailed, fmt::format("{} {} since the version was made", what,
                                                       gone ? "was removed" : "was replaced")};
}

Status VersionReader::check_units(const ManifestObject& object, const ObjectStore& store,
                                  ByteRange range, ByteView bytes) const {
  if (!object.checksums) return {};
  const UnitRange units = units_of(range);
  for (std::uint32_t unit = units.first; unit < units.end(); ++unit) {
    const ByteRange place = bytes_of({unit, 1}, object.size);
    const ByteView content = bytes.subspan(place.offset - range.offset, place.length);
    if (crc32c(content) == (*object.checksums)[unit]) continue;
    return {
        StatusCode::kCorruption,
        fmt::format("{}: its object '{}' in {} is damaged: bytes {} to {} fail their checksum",
                    ref_.text(), object.key.value(), store.describe(), place.offset, place.end())};
  }
  return {};
}

Result<Slice> VersionReader::fetch(const RequestContext& context, const ManifestObject& object,
                                   ByteRange range) const {
  const ByteRange whole = bytes_of(units_of(range), object.size);
  if (whole.empty()) return Slice();
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, store_of(object));
  auto got = store->get(request(context),
                        {.key = object.key, .range = whole, .identity = object.identity});
  if (!got) return failure(explain(got.error(), object, *store));
  // The identity is the store's word; the size is ours.
  if (got->info.size != object.size || got->data.size() != whole.length) {
    return failure(explain({StatusCode::kPreconditionFailed, "another size"}, object, *store));
  }
  MR_RETURN_IF_ERROR(check_units(object, *store, whole, got->data.bytes()));
  return std::move(got->data);
}

Status VersionReader::check_object(const RequestContext& context,
                                   const ManifestObject& object) const {
  MR_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, store_of(object));
  const auto info = store->head(request(context), object.key);
  if (!info) return explain(info.error(), object, *store);
  if (info->identity == object.identity && info->size == object.size) return {};
  return explain({StatusCode::kPreconditionFailed, "another object"}, object, *store);
}

const Manifest& VersionReader::layout() const {
  MutexLock lock(mutex_);
  return newest_ ? *newest_ : manifest_;
}

const Manifest* VersionReader::layout_after(const RequestContext& context,
                                            const Manifest& tried) const {
  MutexLock lock(mutex_);
  if (!asked_ && options_.newest_layout) {
    asked_ = true;
    auto opened = options_.newest_layout(context);
    // Whatever it is instead: the reader's own failure tells more.
    if (opened && (*opened)->content_digest() == manifest_.content_digest())
      newest_ = *std::move(opened);
  }
  return newest_ && newest_.get() != &tried ? newest_.get() : nullptr;
}

Result<std::size_t> VersionWindow::read_at(const RequestContext& context,
                                           const ManifestEntry& entry, std::uint64_t offset,
                                           MutableByteView into) {
  const Manifest& layout = reader_.layout();
  auto read = read_by(layout, context, entry, offset, into);
  if (read || read.error() != StatusCode::kPreconditionFailed) return read;
  const Manifest* const newer = reader_.layout_after(context, layout);
  return newer == nullptr ? read : read_by(*newer, context, entry, offset, into);
}

Result<std::size_t> VersionWindow::read_by(const Manifest& layout, const RequestContext& context,
                                           ManifestEntry entry, std::uint64_t offset,
                                           MutableByteView into) {
  if (entry.kind() != EntryKind::kFile || offset >= entry.size()) return 0;
  into = into.first(std::min<std::uint64_t>(into.size(), entry.size() - offset));
  if (layout_ != &layout) {
    object_.reset();
    bytes_ = {};
    layout_ = &layout;
  }
  if (&layout != &reader_.manifest()) {
    MR_ASSIGN_OR_RETURN(entry, layout.entry(entry.index()));
  }
  MR_ASSIGN_OR_RETURN(const std::vector<Extent> extents, layout.extents(entry));
  std::size_t filled = 0;
  std::uint64_t begin = 0;  // Of the extent, in the file.
  for (const Extent& extent : extents) {
    const std::uint64_t end = begin + extent.logical_bytes;
    const std::uint64_t at = offset + filled;
    if (at < end && filled < into.size()) {
      const std::uint64_t count = std::min<std::uint64_t>(end - at, into.size() - filled);
      MR_RETURN_IF_ERROR(
          read_extent(context, entry, extent, at - begin, into.subspan(filled, count)));
      filled += count;
    }
    begin = end;
  }
  return filled;
}

Status VersionWindow::read_extent(const RequestContext& context, const ManifestEntry& entry,
                                  const Extent& extent, std::uint64_t offset,
                                  MutableByteView into) {
  while (!into.empty()) {
    const ByteRange wanted{extent.offset + offset, into.size()};
    MR_RETURN_IF_ERROR(load(context, entry, extent, wanted));
    const ByteView there = bytes_.bytes().subspan(wanted.offset - begin_);
    const std::size_t count = std::min(there.size(), into.size());
    std::memcpy(into.data(), there.data(), count);
    into = into.subspan(count);
    offset += count;
  }
  return {};
}

// Brings in at least the first byte of `wanted`.
Status VersionWindow::load(const RequestContext& context, const ManifestEntry& entry,
                           const Extent& extent, ByteRange wanted) {
  const bool same = object_ && number_ == extent.object &&
                    (extent.object != kOwnObject || owner_ == entry.index());
  if (same && wanted.offset >= begin_ && wanted.offset < begin_ + bytes_.size()) return {};
  if (!same) {
    object_.reset();
    bytes_ = {};
    MR_ASSIGN_OR_RETURN(object_, layout_->object_of(entry, extent));
    number_ = extent.object;
    owner_ = entry.index();
  }
  const std::uint64_t begin = wanted.offset / kUnitBytes * kUnitBytes;
  // All of a window, also behind what is wanted: the next file of a pack lies there.
  const std::uint64_t length =
      std::min(reader_.options().window_bytes, object_->size - std::min(begin, object_->size));
  bytes_ = {};
  MR_ASSIGN_OR_RETURN(bytes_, reader_.fetch(context, *object_, {begin, length}));
  begin_ = begin;
  if (wanted.offset < begin_ + bytes_.size()) return {};
  return {StatusCode::kCorruption,
          fmt::format("{}: a file reaches beyond the end of its object '{}'", reader_.ref().text(),
                      object_->key.value())};
}

}  // namespace millrace
