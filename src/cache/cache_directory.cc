#include "cache/cache_directory.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/log.h"
#include "base/units.h"
#include "cache/encrypted_object.h"
#include "cache/object_file.h"
#include "cache/small_object_file.h"
#include "platform/path.h"
#include "platform/process.h"
#include "platform/small_file.h"

namespace millrace {
namespace {

// The first line of the format file. A later format has another number.
constexpr std::string_view kFormatLine = "millrace-cache 1\n";
constexpr std::string_view kEncryptionLine = "encrypted aes-256-xts ";
constexpr unsigned kFans = 256;
constexpr Duration kWritePause = std::chrono::seconds(10);

std::string objects_path(const std::string& directory) { return directory + "/objects"; }

std::string fan_path(const std::string& directory, unsigned fan) {
  return fmt::format("{}/{:02x}", objects_path(directory), fan);
}

std::string format_text(const SectorCipher* cipher) {
  std::string text(kFormatLine);
  if (cipher != nullptr) text += fmt::format("{}{}\n", kEncryptionLine, cipher->key_check());
  return text;
}

Status check_format(Disk& disk, const std::string& path, const SectorCipher* cipher) {
  const std::string file_path = path + "/format";
  const std::string wanted = format_text(cipher);
  Result<std::unique_ptr<DiskFile>> file = disk.open(file_path, OpenMode::kRead);
  if (!file) {
    // A start that failed half-way leaves no format file, so that the next one can finish it.
    return file.error().code() == StatusCode::kNotFound
               ? replace_small_file(disk, file_path, wanted)
               : file.error();
  }
  std::vector<std::byte> bytes(128);
  MR_ASSIGN_OR_RETURN(const std::size_t size, (*file)->read_at(0, bytes));
  const std::string_view found = as_text(bytes).substr(0, size);
  if (found == wanted) return {};
  if (found == kFormatLine) {
    return {StatusCode::kUnauthenticated,
            fmt::format("the cache in {} is not encrypted, but a key is given; use another "
                        "directory, or empty this one",
                        path)};
  }
  if (found.starts_with(std::string(kFormatLine) + std::string(kEncryptionLine))) {
    return {StatusCode::kUnauthenticated,
            fmt::format("the cache in {} is encrypted{}; give its key, use another directory, or "
                        "empty this one",
                        path, cipher != nullptr ? " with another key" : "")};
  }
  return {StatusCode::kUnsupported,
          fmt::format("{} does not say '{}': the directory was written by another version of "
                      "Millrace, or is no cache; use another directory, or empty this one",
                      file_path, kFormatLine.substr(0, kFormatLine.size() - 1))};
}

std::optional<ObjectDigest> digest_of(std::string_view name) {
  const Result<std::vector<std::byte>> bytes = from_hex(name);
  ObjectDigest digest;
  if (!bytes || bytes->size() != digest.bytes.size()) return std::nullopt;
  std::ranges::copy(*bytes, digest.bytes.begin());
  return digest;
}

Status first_failure(Status first, Status second) { return first.ok() ? second : first; }

std::uint64_t share_of(std::uint64_t bytes, double share) {
  return static_cast<std::uint64_t>(static_cast<double>(bytes) * share);
}

}  // namespace

// ---- Opening

CacheDirectory::CacheDirectory(Disk& disk, CacheDirectoryOptions options, Clock& clock,
                               Metrics& metrics, std::unique_ptr<DiskLock> lock)
    : disk_(disk),
      options_(std::move(options)),
      clock_(clock),
      bad_records_(metrics.counter(MetricId::kCacheBadUnits,
                                   {static_cast<std::size_t>(CacheDamage::kIndex)})),
      lock_(std::move(lock)),
      space_(0),
      leases_(disk_, options_.path, space_, clock_) {}

Result<std::unique_ptr<CacheDirectory>> CacheDirectory::open(Disk& disk,
                                                             CacheDirectoryOptions options,
                                                             Clock& clock, Metrics& metrics) {
  MR_RETURN_IF_ERROR(disk.make_directories(options.path));
  if (options.owner.empty()) options.owner = describe_this_process("millrace");
  MR_ASSIGN_OR_RETURN(std::unique_ptr<DiskLock> lock,
                      disk.lock(options.path + "/lock", options.owner));
  std::unique_ptr<CacheDirectory> directory(
      new CacheDirectory(disk, std::move(options), clock, metrics, std::move(lock)));
  MR_RETURN_IF_ERROR(directory->prepare());
  return directory;
}

Status CacheDirectory::prepare() {
  MR_RETURN_IF_ERROR(check_format(disk_, path(), options_.cipher.get()));
  MR_RETURN_IF_ERROR(disk_.make_directory(objects_path(path())));
  MR_ASSIGN_OR_RETURN(segments_, SegmentStore::open(disk_, path(), options_.segments,
                                                    [this](const SegmentDamage& damage) {
                                                      report_damage(damage.what, damage.path, 1);
                                                    }));
  MR_ASSIGN_OR_RETURN(const DiskSpace space, disk_.space(path()));
  quota_bytes_ = options_.quota_bytes > 0 ? options_.quota_bytes
                                          : share_of(space.total_bytes, options_.quota_share);
  set_limit(space);
  return leases_.load();
}

std::string CacheDirectory::stem(const ObjectDigest& digest) const {
  return fmt::format("{}/{}", fan_path(path(), std::to_integer<unsigned>(digest.bytes[0])),
                     digest.to_text());
}

void CacheDirectory::report_damage(std::string_view what, std::string_view where,
                                   std::uint64_t count) {
  bad_records_.add(count);
  log_error("damage in the cache; it is fetched again",
            {{"what", what}, {"where", where}, {"count", count}});
}

// ---- Objects

std::unique_ptr<StoredObject> CacheDirectory::decrypted(std::unique_ptr<StoredObject> stored,
                                                        const ObjectVersion& version) {
  if (!is_encrypted()) return stored;
  return std::make_unique<EncryptedObject>(std::move(stored), version, options_.cipher);
}

CacheDirectory::Loaded CacheDirectory::load(const ObjectVersion& version) {
  Loaded loaded =
      version.size() <= kSmallObjectBytesMax ? load_small(version) : load_large(version);
  note_found(version, loaded.recorded);
  return loaded;
}

CacheDirectory::Loaded CacheDirectory::load_large(const ObjectVersion& version) {
  const std::string where = stem(version.digest());
  Result<std::unique_ptr<ObjectFile>> file = ObjectFile::open(disk_, where, version);
  if (!file) {
    if (file.error().code() == StatusCode::kCorruption) {
      report_damage(file.error().message(), where, 1);
      // A file that is no good, but may be in use elsewhere, makes room for a new one by its name.
      if (Status status = ObjectFile::remove(disk_, where); !status.ok()) {
        note_write_failure(status);
      }
    } else if (file.error().code() != StatusCode::kNotFound) {
      log_error("cannot read the cache", {{"error", file.error().to_string()}});
    }
    return {};
  }
  Result<UnitRecords> records = (*file)->read_records();
  if (!records) {
    log_error("cannot read the cache", {{"error", records.error().to_string()}});
    return {};
  }
  if (!records->damaged.empty()) {
    report_damage("damaged records of units", where, records->damaged.size());
    for (const std::uint32_t unit : records->damaged) {
      if (Status status = (*file)->distrust({unit, 1}); !status.ok()) note_write_failure(status);
    }
    // The mark may have been among them, and must outlive this process.
    if (records->handed_out) {
      if (Status status = (*file)->mark_handed_out(); !status.ok()) note_write_failure(status);
    }
  }
  return {decrypted(*std::move(file), version), std::move(records->recorded), records->handed_out};
}

CacheDirectory::Loaded CacheDirectory::load_small(const ObjectVersion& version) {
  Result<SmallObject> found = segments_->load(version);
  if (!found) {
    if (found.error().code() == StatusCode::kCorruption) {
      // The segment store has reported it.
      if (Status status = segments_->remove(version.digest());
          !status.ok() && status.code() != StatusCode::kNotFound) {
        note_write_failure(status);
      }
    } else if (found.error().code() != StatusCode::kNotFound) {
      log_error("cannot read the cache", {{"error", found.error().to_string()}});
    }
    return {};
  }
  Loaded loaded;
  loaded.recorded.resize(unit_count(version.size()));
  for (std::uint32_t unit = 0; unit < loaded.recorded.size(); ++unit)
    loaded.recorded[unit] = unit;
  loaded.stored =
      decrypted(std::make_unique<SmallObjectFile>(segments_, version, *std::move(found)), version);
  return loaded;
}

Result<std::unique_ptr<StoredObject>> CacheDirectory::create(const ObjectVersion& version) {
  // What may be there could not be loaded, and is replaced.
  space_.remove_object(version.digest());
  if (version.size() <= kSmallObjectBytesMax) {
    return decrypted(std::make_unique<SmallObjectFile>(segments_, version, std::nullopt), version);
  }
  const std::string where = stem(version.digest());
  auto file = ObjectFile::create(disk_, where, version);
  if (!file && file.error() == StatusCode::kNotFound) {
    // The first of its directory. To make all of them at the start would keep a new cache's first
    // reader waiting.
    MR_RETURN_IF_ERROR(disk_.make_directory(std::string(parent_path(where))));
    file = ObjectFile::create(disk_, where, version);
  }
  if (!file) return failure(file.error());
  return decrypted(*std::move(file), version);
}

std::uint64_t CacheDirectory::room_for(const ObjectVersion& version, UnitRange units) {
  const std::uint64_t bytes = bytes_of(units, version.size()).length;
  if (version.size() > kSmallObjectBytesMax) return bytes;
  const std::array<std::uint32_t, kSegmentUnitsMax> checksums{};
  const Result<std::vector<std::byte>> header = encode_segment_record_header(
      version, static_cast<std::uint32_t>(bytes), std::span(checksums).first(units.count));
  if (!header) return bytes;  // The segments refuse it as well.
  SegmentEntry entry;
  entry.header_bytes = static_cast<std::uint32_t>(header->size());
  entry.stored_bytes = static_cast<std::uint32_t>(bytes);
  return entry.pages_bytes();
}

Status CacheDirectory::remove(const ObjectDigest& digest) {
  if (segments_->contains(digest)) return segments_->remove(digest);
  return ObjectFile::remove(disk_, stem(digest));
}

Result<ObjectVersion> CacheDirectory::version_of(const ObjectDigest& digest) {
  if (segments_->contains(digest)) return segments_->version_of(digest);
  return read_object_map_version(disk_, stem(digest));
}

Status CacheDirectory::free_block(const ObjectDigest& digest, std::uint32_t block) {
  if (segments_->contains(digest)) return segments_->remove(digest);
  const std::string where = stem(digest);
  const Result<ObjectVersion> version = read_object_map_version(disk_, where);
  const Result<std::unique_ptr<ObjectFile>> file =
      version ? ObjectFile::open(disk_, where, *version) : failure(version.error());
  if (!file) {
    // Without a sound map, or without its data, nothing of it can be used.
    return file.error().code() == StatusCode::kNotFound ||
                   file.error().code() == StatusCode::kCorruption
               ? ObjectFile::remove(disk_, where)
               : file.error();
  }
  // Somebody may have it open still: it goes whole, and the books learn of its other blocks later.
  MR_ASSIGN_OR_RETURN(const bool handed_out, (*file)->is_handed_out());
  if (handed_out) return ObjectFile::remove(disk_, where);
  const std::uint32_t first = block * kBlockUnits;
  const std::uint32_t units = unit_count(version->size());
  if (first >= units) return {};
  return (*file)->forget({first, std::min(kBlockUnits, units - first)});
}

void CacheDirectory::discard(const ObjectDigest& digest, const Status& why) {
  report_damage(why.message(), stem(digest), 1);
  if (Status status = remove(digest); !status.ok()) note_write_failure(status);
}

void CacheDirectory::remove_orphan(const ObjectDigest& digest) {
  const std::string where = stem(digest);
  if (disk_.stat(where + ".map").has_value()) return;
  if (Status status = ObjectFile::remove(disk_, where); !status.ok()) note_write_failure(status);
}

Result<std::unique_ptr<DiskFile>> CacheDirectory::open_for_reading(const ObjectDigest& digest) {
  return disk_.open(stem(digest) + ".data", OpenMode::kRead);
}

// ---- The books

void CacheDirectory::note_found(const ObjectVersion& version,
                                const std::vector<std::uint32_t>& recorded) {
  for (std::size_t i = 0; i < recorded.size();) {
    const std::uint32_t block = recorded[i] / kBlockUnits;
    std::uint64_t bytes = 0;
    for (; i < recorded.size() && recorded[i] / kBlockUnits == block; ++i)
      bytes += bytes_of({recorded[i], 1}, version.size()).length;
    if (version.size() <= kSmallObjectBytesMax)
      bytes = room_for(version, {0, unit_count(version.size())});
    space_.found(version.digest(), block, static_cast<std::uint32_t>(bytes));
  }
}

void CacheDirectory::count(const ObjectDigest& digest) {
  if (const std::optional<std::uint64_t> bytes = segments_->find(digest)) {
    space_.found(digest, 0, static_cast<std::uint32_t>(*bytes));
    return;
  }
  const std::string where = stem(digest);
  const Result<ObjectVersion> version = read_object_map_version(disk_, where);
  if (!version || version->digest() != digest) return;  // Reported when it is asked for.
  const Result<std::unique_ptr<ObjectFile>> file = ObjectFile::open(disk_, where, *version);
  if (!file) return;
  if (const Result<UnitRecords> records = (*file)->read_records()) {
    note_found(*version, records->recorded);
  }
}

Status CacheDirectory::for_each_object(const Visitor& visitor) {
  bool go_on = segments_->for_each(
      [&](const ObjectDigest& digest) { return visitor(digest, OnDisk::kWhole); });
  // One directory that cannot be read does not keep the others out of the books.
  Status status;
  for (unsigned fan = 0; fan < kFans && go_on; ++fan) {
    const Result<std::vector<DirectoryEntry>> entries = disk_.list(fan_path(path(), fan));
    if (entries) {
      go_on = visit_fan(*entries, visitor);
    } else if (entries.error() != StatusCode::kNotFound) {  // It is made for its first object.
      status = first_failure(std::move(status), entries.error());
    }
  }
  return status;
}

bool CacheDirectory::visit_fan(const std::vector<DirectoryEntry>& entries, const Visitor& visitor) {
  constexpr std::string_view kData = ".data";
  for (const DirectoryEntry& entry : entries) {
    if (!entry.name.ends_with(kData)) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - kData.size());
    const std::optional<ObjectDigest> digest = digest_of(name);
    if (!digest) continue;
    const bool has_map =
        std::ranges::binary_search(entries, name + ".map", {}, &DirectoryEntry::name);
    if (!visitor(*digest, has_map ? OnDisk::kWhole : OnDisk::kWithoutMap)) return false;
  }
  return true;
}

void CacheDirectory::all_counted() { counted_ = true; }

bool CacheDirectory::may_write() const { return clock_.now() >= no_writes_before_.load(); }

void CacheDirectory::note_write_failure(const Status& why) {
  const TimePoint now = clock_.now();
  if (no_writes_before_.exchange(now + kWritePause) > now) return;
  log_error("cannot write to the cache; reads go on from the store",
            {{"directory", path()}, {"error", why.to_string()}});
}

void CacheDirectory::refresh_limit() {
  const Result<DiskSpace> space = disk_.space(path());
  if (!space) {
    note_write_failure(space.error());
    return;
  }
  set_limit(*space);
}

void CacheDirectory::set_limit(const DiskSpace& space) {
  const std::uint64_t guard = share_of(space.total_bytes, options_.free_share_min);
  // What we could have if we took all that is free, less what must stay so: others who fill the
  // disk push us back. As long as it is not known what of the disk is our own, all of it may be.
  const std::uint64_t reachable =
      counted_ ? space_.used_bytes() + space.free_bytes : space.total_bytes;
  const std::uint64_t allowed = reachable > guard ? reachable - guard : 0;
  space_.set_limit(std::min(quota_bytes_, allowed));
}

}  // namespace millrace
