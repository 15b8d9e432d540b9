#include "cache/segment_store.h"

#include <cassert>
#include <deque>
#include <utility>

#include <fmt/format.h>

#include "platform/path.h"

namespace millrace {
namespace {

Status no_small_object(const ObjectDigest& digest) {
  return {StatusCode::kNotFound, fmt::format("no small object {} is cached", digest.to_text())};
}

Status check_small_object(const ObjectVersion& version, ByteView data,
                          std::span<const std::uint32_t> checksums) {
  if (data.size() <= kSmallObjectBytesMax && data.size() == version.size() &&
      checksums.size() == unit_count(data.size())) {
    return {};
  }
  return {StatusCode::kInvalidArgument,
          fmt::format("{} bytes with {} checksums are no small object of {} bytes", data.size(),
                      checksums.size(), version.size())};
}

// Whether it is gone.
bool unlink_segment_file(Disk& disk, const std::string& path) {
  const Status status = disk.remove(path);
  return status.ok() || status == StatusCode::kNotFound;
}

}  // namespace

SegmentStore::SegmentStore(Disk& disk, const std::string& directory, SegmentOptions options,
                           SegmentDamageReport report)
    : disk_(disk),
      options_(options),
      report_(std::move(report)),
      files_(disk, join_path(directory, "segments"), options.open_files_max) {}

SegmentStore::~SegmentStore() = default;

std::optional<SegmentPlace> SegmentStore::place_of(const ObjectDigest& digest) const {
  MutexLock lock(mutex_);
  const SegmentPlace* place = table_.find(digest);
  return place == nullptr ? std::nullopt : std::optional(*place);
}

std::optional<std::uint64_t> SegmentStore::find(const ObjectDigest& digest) const {
  const std::optional<SegmentPlace> place = place_of(digest);
  return place ? std::optional(place->bytes()) : std::nullopt;
}

bool SegmentStore::still_there(const SmallObject& object) const {
  return place_of(object.place.digest) == object.place;
}

Status SegmentStore::put(const ObjectVersion& version, ByteView data,
                         std::span<const std::uint32_t> checksums) {
  MR_RETURN_IF_ERROR(check_small_object(version, data, checksums));
  if (contains(version.digest())) return {};
  const auto stored_bytes = static_cast<std::uint32_t>(data.size());
  MR_ASSIGN_OR_RETURN(const std::vector<std::byte> header,
                      encode_segment_record_header(version, stored_bytes, checksums));
  SegmentEntry entry{.digest = version.digest(),
                     .segment = 0,
                     .page = 0,
                     .header_bytes = static_cast<std::uint32_t>(header.size()),
                     .stored_bytes = stored_bytes,
                     .object_bytes = static_cast<std::uint32_t>(version.size())};
  MR_ASSIGN_OR_RETURN(const Reservation reserved, reserve(entry.pages()));
  SegmentWriter& writer = *reserved.writer;
  entry.segment = writer.segment();
  entry.page = reserved.page;
  Status status = writer.write_record(entry, header, data);
  const Result<std::uint32_t> slot = status.ok() ? writer.append(entry) : failure(status);
  if (!slot) {
    if (!writer.give_back(entry).ok()) note_unfreed(entry.segment, entry.pages_bytes());
    end_write(entry.segment);
    return slot.error();
  }
  const SegmentPlace place = segment_place(entry, *slot);
  const bool published = publish(place);
  // Another thread stored the same object meanwhile. The record stays on disk when it cannot be
  // buried: a start that finds two takes one of them.
  if (!published && bury(place).ok()) free_space(place);
  end_write(place.segment);
  return {};
}

Result<SegmentStore::Reservation> SegmentStore::reserve(std::uint32_t pages) {
  MutexLock growing(growth_mutex_);
  if (writer_) {
    if (const auto page = writer_->reserve(pages)) {
      MutexLock lock(mutex_);
      ++segments_.at(writer_->segment()).writers;
      return Reservation{writer_, *page};
    }
  }
  if (next_segment_ > UINT32_MAX) {
    return failure(
        StatusCode::kResourceExhausted,
        fmt::format("no number is left for a segment after '{}'", files_.data_path(UINT32_MAX)));
  }
  // A number is used once, even if files of it could not be made: some may be there.
  const auto segment = static_cast<std::uint32_t>(next_segment_++);
  MR_ASSIGN_OR_RETURN(
      std::shared_ptr<SegmentWriter> fresh,
      SegmentWriter::create(disk_, files_.data_path(segment), files_.index_path(segment), segment,
                            options_.segment_bytes_max));
  const std::optional<std::uint32_t> page = fresh->reserve(pages);
  assert(page);
  const std::shared_ptr<SegmentWriter> full = std::exchange(writer_, fresh);
  files_.add(segment, fresh->data());
  {
    MutexLock lock(mutex_);
    segments_[segment].writers = 1;
    newest_ = segment;
  }
  if (full) unlink_if_empty(full->segment());
  return Reservation{std::move(fresh), *page};
}

bool SegmentStore::publish(const SegmentPlace& place) {
  MutexLock lock(mutex_);
  if (table_.find(place.digest) != nullptr) return false;
  table_.insert(place);
  ++segments_.at(place.segment).records;
  bytes_ += place.bytes();
  return true;
}

void SegmentStore::end_write(std::uint32_t segment) {
  {
    MutexLock lock(mutex_);
    --segments_.at(segment).writers;
  }
  unlink_if_empty(segment);
}

Status SegmentStore::remove(const ObjectDigest& digest) {
  const std::optional<SegmentPlace> place = place_of(digest);
  if (!place) return no_small_object(digest);
  if (Status status = bury(*place); !status.ok()) {
    // Whoever removes the last record of a segment also takes its files away.
    return place_of(digest) == place ? status : no_small_object(digest);
  }
  {
    MutexLock lock(mutex_);
    const SegmentPlace* now = table_.find(digest);
    if (now == nullptr || *now != *place) return no_small_object(digest);
    table_.erase(digest);
    bytes_ -= place->bytes();
    // Counts as a writer until the space is freed, so that the files stay.
    Segment& segment = segments_.at(place->segment);
    --segment.records;
    ++segment.writers;
  }
  free_space(*place);
  end_write(place->segment);
  return {};
}

Status SegmentStore::bury(const SegmentPlace& place) {
  MR_ASSIGN_OR_RETURN(const std::unique_ptr<DiskFile> index,
                      disk_.open(files_.index_path(place.segment), OpenMode::kReadWrite));
  return bury_segment_entry(*index, place.segment, place.slot);
}

void SegmentStore::free_space(const SegmentPlace& place) {
  const auto data = disk_.open(files_.data_path(place.segment), OpenMode::kReadWrite);
  const bool freed = data && (*data)->punch(place.offset(), place.bytes()).ok();
  if (!freed) note_unfreed(place.segment, place.bytes());
}

void SegmentStore::note_unfreed(std::uint32_t segment, std::uint64_t bytes) {
  MutexLock lock(mutex_);
  segments_.at(segment).unfreed_bytes += bytes;
  unfreed_bytes_ += bytes;
}

void SegmentStore::unlink_if_empty(std::uint32_t segment) {
  std::uint64_t unfreed_bytes = 0;
  {
    MutexLock lock(mutex_);
    const auto known = segments_.find(segment);
    if (known == segments_.end() || newest_ == segment || known->second.records != 0 ||
        known->second.writers != 0) {
      return;
    }
    unfreed_bytes = known->second.unfreed_bytes;
    segments_.erase(known);
  }
  files_.forget(segment);
  // The index last: without live entries it is what the next start clears away in silence.
  if (!unlink_segment_file(disk_, files_.data_path(segment)) ||
      !unlink_segment_file(disk_, files_.index_path(segment))) {
    return;
  }
  MutexLock lock(mutex_);
  unfreed_bytes_ -= unfreed_bytes;
}

Result<SegmentStore::LoadedHeader> SegmentStore::load_header(const ObjectDigest& digest) {
  const std::optional<SegmentPlace> place = place_of(digest);
  if (!place) return failure(no_small_object(digest));
  const auto read = [&]() -> Result<LoadedHeader> {
    LoadedHeader loaded{.file = nullptr, .place = *place, .bytes = {}, .header = {}};
    MR_ASSIGN_OR_RETURN(loaded.file, files_.open(place->segment));
    loaded.bytes.resize(place->header_bytes());
    MR_ASSIGN_OR_RETURN(const std::size_t count,
                        loaded.file->read_at(place->offset(), loaded.bytes));
    if (count < loaded.bytes.size()) {
      return failure(StatusCode::kCorruption, "the segment ends inside its header");
    }
    MR_ASSIGN_OR_RETURN(loaded.header, decode_segment_record_header(loaded.bytes));
    const SegmentEntry claimed{.digest = digest,
                               .segment = place->segment,
                               .page = place->page,
                               .header_bytes = static_cast<std::uint32_t>(loaded.bytes.size()),
                               .stored_bytes = loaded.header.stored_bytes,
                               .object_bytes = loaded.header.object_bytes};
    if (loaded.header.digest != digest || claimed.pages() != place->pages) {
      return failure(StatusCode::kCorruption, "it is not the record that the index names");
    }
    return loaded;
  };
  auto loaded = read();
  if (!loaded) return failure(explain(*place, loaded.error()));
  return loaded;
}

Result<SmallObject> SegmentStore::load(const ObjectVersion& version) {
  MR_ASSIGN_OR_RETURN(const LoadedHeader loaded, load_header(version.digest()));
  const SegmentRecordHeader& header = loaded.header;
  if (header.store != version.store().value() || header.key != version.key().value() ||
      header.identity != version.identity().value() || header.object_bytes != version.size()) {
    return failure(explain(loaded.place,
                           {StatusCode::kCorruption, "it is of another object than its digest"}));
  }
  return SmallObject{.file = loaded.file,
                     .data_offset = loaded.place.offset() + loaded.bytes.size(),
                     .stored_bytes = header.stored_bytes,
                     .checksums = header.checksums,
                     .place = loaded.place};
}

Result<ObjectVersion> SegmentStore::version_of(const ObjectDigest& digest) {
  MR_ASSIGN_OR_RETURN(const LoadedHeader loaded, load_header(digest));
  const SegmentRecordHeader& header = loaded.header;
  ObjectVersion version(StoreId(std::string(header.store)), ObjectKey(std::string(header.key)),
                        ObjectIdentity(std::string(header.identity)), header.object_bytes);
  if (version.digest() == digest) return version;
  return failure(
      explain(loaded.place, {StatusCode::kCorruption, "it is of another object than its digest"}));
}

Status SegmentStore::explain(const SegmentPlace& place, const Status& status) {
  // A record that is being removed reads as zeros, or its segment is gone.
  if (place_of(place.digest) != place) return no_small_object(place.digest);
  const std::string path = files_.data_path(place.segment);
  const std::string where = fmt::format("record at byte {}", place.offset());
  if (status == StatusCode::kCorruption) {
    note_damage({path, fmt::format("{}: {}", where, status.message())});
  }
  // The file is gone, but the object is supposed to be there: not the kNotFound of an absent one.
  if (status == StatusCode::kNotFound) {
    note_damage({path, status.message()});
    return {StatusCode::kCorruption, status.message()};
  }
  return status.with_context(fmt::format("'{}', {}", path, where));
}

void SegmentStore::note_damage(const SegmentDamage& damage) {
  damaged_.fetch_add(1);
  if (report_) report_(damage);
}

SegmentUsage SegmentStore::usage() const {
  MutexLock lock(mutex_);
  return {.records = table_.size(),
          .bytes = bytes_,
          .segments = segments_.size(),
          .unfreed_bytes = unfreed_bytes_,
          .damaged = damaged_.load()};
}

bool SegmentStore::for_each(const std::function<bool(const ObjectDigest&)>& visitor) const {
  std::deque<ObjectDigest> digests;
  {
    MutexLock lock(mutex_);
    for (const SegmentPlace* place : table_.oldest_first())
      digests.push_back(place->digest);
  }
  // Millions of visits take seconds, and readers want the lock.
  for (; !digests.empty(); digests.pop_front()) {
    if (contains(digests.front()) && !visitor(digests.front())) return false;
  }
  return true;
}

}  // namespace millrace
