#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/object_version.h"
#include "cache/segment_files.h"
#include "cache/segment_format.h"
#include "cache/segment_index.h"
#include "cache/segment_table.h"
#include "cache/segment_writer.h"
#include "cache/unit.h"
#include "platform/disk.h"

namespace millrace {

struct SegmentOptions {
  // A segment is closed when the next record would go beyond.
  std::uint64_t segment_bytes_max = 256 * kMiB;
  // Segments kept open for reading when nobody reads them.
  std::size_t open_files_max = 512;
};

// A record whose header was read and found sound. Its data is `stored_bytes` from `data_offset` of
// the file; nothing is known about it until units are held against their checksums.
struct SmallObject {
  std::shared_ptr<DiskFile> file;
  std::uint64_t data_offset = 0;
  std::uint32_t stored_bytes = 0;
  std::array<std::uint32_t, kSegmentUnitsMax> checksums{};
  SegmentPlace place;

  // CRC-32C of each unit of the data as it is stored.
  std::span<const std::uint32_t> unit_checksums() const {
    return std::span(checksums).first(unit_count(stored_bytes));
  }
};

struct SegmentUsage {
  std::uint64_t records = 0;
  std::uint64_t bytes = 0;  // Of live records, in whole pages.
  std::uint64_t segments = 0;
  // Of removed records whose space the disk did not give back; it does when their segment goes.
  std::uint64_t unfreed_bytes = 0;
  // Damage found since the store was opened.
  std::uint64_t damaged = 0;
};

// The small objects of one cache directory, in append-only segment files below
// `<directory>/segments`; docs/formats/cache_segments.md has the layout.
//
// Nothing is synced, so a kill or a power loss may leave anything. Whatever is read is checked:
// what is not as it was written is reported and treated as absent, never trusted, never fatal.
//
// Invariants:
//  1. A digest has at most one record that can be found.
//  2. A record is written before its entry, and found after that. It can no longer be found before
//     its space is freed.
//  3. A place is used by one record only, as long as the store is open. Who read from a place and
//     finds its record still there has read that record.
//  4. No segment but the newest is appended to, and none from before the start. A segment goes when
//     it is not the newest, has no live record and nobody writes to it.
//
// One owner per directory. All methods are safe from any thread, and block on the disk but where
// they say not. The disk must outlive the store and the objects that it gave out.
class SegmentStore {
 public:
  // Reads the indexes. Damage goes to `report`, now and later; so do segments that the disk cannot
  // read, which are left alone. kUnsupported, naming the file, when a later Millrace wrote one of
  // them: then nothing is changed.
  static Result<std::unique_ptr<SegmentStore>> open(Disk& disk, const std::string& directory,
                                                    SegmentOptions options,
                                                    SegmentDamageReport report);
  ~SegmentStore();
  SegmentStore(const SegmentStore&) = delete;
  SegmentStore& operator=(const SegmentStore&) = delete;

  // What the record takes on the disk; nothing when there is none. Never blocks.
  std::optional<std::uint64_t> find(const ObjectDigest& digest) const;
  bool contains(const ObjectDigest& digest) const { return find(digest).has_value(); }

  // Stores an object whole. `data` is the object or its ciphertext, `checksums` are of its units as
  // given here. Success also when the object is there already: it
  // is immutable. kInvalidArgument for what is no small object; other failures are those of the
  // disk, and leave the object absent.
  Status put(const ObjectVersion& version, ByteView data, std::span<const std::uint32_t> checksums);

  // kNotFound when it is not there; kCorruption, reported, when the record is not what was written:
  // the caller removes it. kUnsupported when a later Millrace wrote it.
  Result<SmallObject> load(const ObjectVersion& version);
  // The version that a record describes, for whoever has only the digest. Failures as load().
  Result<ObjectVersion> version_of(const ObjectDigest& digest);
  // False once the object was removed: what was read from its place may then be zeros. Bytes read
  // before a true are the record's. Never blocks.
  bool still_there(const SmallObject& object) const;

  // kNotFound when it is not there. After another failure it is still there, but a restart may
  // miss it. Success also when its space could not be freed: usage() has that.
  Status remove(const ObjectDigest& digest);

  // Never blocks.
  SegmentUsage usage() const;
  // All records, those written first before the others; not those that come or go meanwhile. The
  // visitor returns false to end it, and may call the store. False when it was ended.
  bool for_each(const std::function<bool(const ObjectDigest&)>& visitor) const;

 private:
  struct Segment {
    std::uint64_t records = 0;
    std::uint64_t writers = 0;  // Those who still write to it, or free space in it.
    std::uint64_t unfreed_bytes = 0;
  };
  struct Reservation {
    std::shared_ptr<SegmentWriter> writer;
    std::uint32_t page = 0;
  };
  // A header with the bytes that it points into.
  struct LoadedHeader {
    std::shared_ptr<DiskFile> file;
    SegmentPlace place;
    std::vector<std::byte> bytes;
    SegmentRecordHeader header;
  };
  class Start;

  SegmentStore(Disk& disk, const std::string& directory, SegmentOptions options,
               SegmentDamageReport report);

  Result<Reservation> reserve(std::uint32_t pages) MR_EXCLUDES(mutex_);
  // False when another record of the same object was published first.
  bool publish(const SegmentPlace& place) MR_EXCLUDES(mutex_);
  // Ends a reservation; its record has no entry, or one that is published or buried.
  void end_write(std::uint32_t segment) MR_EXCLUDES(mutex_);
  // Marks the entry of a record as dead.
  Status bury(const SegmentPlace& place);
  // Of a record that nobody can find any more.
  void free_space(const SegmentPlace& place) MR_EXCLUDES(mutex_);
  void note_unfreed(std::uint32_t segment, std::uint64_t bytes) MR_EXCLUDES(mutex_);
  void unlink_if_empty(std::uint32_t segment) MR_EXCLUDES(mutex_);

  std::optional<SegmentPlace> place_of(const ObjectDigest& digest) const;
  Result<LoadedHeader> load_header(const ObjectDigest& digest);
  // Turns what failed at a place into what the caller can do.
  Status explain(const SegmentPlace& place, const Status& status);
  void note_damage(const SegmentDamage& damage);

  // Constant after construction.
  Disk& disk_;
  const SegmentOptions options_;
  const SegmentDamageReport report_;

  // Synchronise themselves.
  SegmentFiles files_;
  std::atomic<std::uint64_t> damaged_ = 0;

  // Orders the making of segments. Taken before mutex_, and held over disk calls.
  Mutex growth_mutex_;
  std::shared_ptr<SegmentWriter> writer_ MR_GUARDED_BY(growth_mutex_);
  std::uint64_t next_segment_ MR_GUARDED_BY(growth_mutex_) = 0;

  // Never held over disk calls.
  mutable Mutex mutex_;
  SegmentTable table_ MR_GUARDED_BY(mutex_);
  std::map<std::uint32_t, Segment> segments_ MR_GUARDED_BY(mutex_);
  std::optional<std::uint32_t> newest_ MR_GUARDED_BY(mutex_);
  std::uint64_t bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::uint64_t unfreed_bytes_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
