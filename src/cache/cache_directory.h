#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/status.h"
#include "cache/cache_space.h"
#include "cache/lease_table.h"
#include "cache/object_version.h"
#include "cache/segment_store.h"
#include "cache/stored_object.h"
#include "metrics/metrics.h"
#include "platform/disk.h"
#include "platform/sector_cipher.h"

namespace millrace {

struct CacheDirectoryOptions {
  std::string path;
  // Who takes it, as those are told who come too late; empty: this process (platform/process.h).
  std::string owner = {};
  // At most this much, in bytes, or if 0 this share of the disk.
  std::uint64_t quota_bytes = 0;
  double quota_share = 0.8;
  // The disk keeps at least this share free, whatever the quota says: it wins over the quota.
  double free_share_min = 0.05;
  SegmentOptions segments = {};
  // When set, all content on the disk is encrypted; names, sizes and times are not.
  std::shared_ptr<SectorCipher> cipher = nullptr;
};

// One directory of the cache, on one disk: its owner's lock, its format, what is in it and how much
// it may hold. docs/formats/cache.md has the layout.
//
// Failures of the disk do not leave this class as failures of a read: what cannot be loaded counts
// as absent, and what cannot be written is not kept; the operator is told. After a failed write
// nothing is written for a while.
//
// All methods block and are safe from any thread. Disk, clock and metrics must outlive it.
class CacheDirectory {
 public:
  // Takes the directory, made when absent. kConflict names the owner when somebody has it;
  // kUnsupported when a later Millrace wrote it; kUnauthenticated when it is encrypted and this is
  // not the key, or the other way round.
  static Result<std::unique_ptr<CacheDirectory>> open(Disk& disk, CacheDirectoryOptions options,
                                                      Clock& clock, Metrics& metrics);

  const std::string& path() const { return options_.path; }
  bool is_encrypted() const { return options_.cipher != nullptr; }
  CacheSpace& space() { return space_; }
  LeaseTable& leases() { return leases_; }
  std::uint64_t quota_bytes() const { return quota_bytes_; }

  struct Loaded {
    std::unique_ptr<StoredObject> stored;  // Null: nothing is there.
    std::vector<std::uint32_t> recorded;
    bool handed_out = false;
  };
  // What the disk has of an object. Damaged records are reported and emptied.
  Loaded load(const ObjectVersion& version);
  // What units of an object take on the disk: a small object has a header and takes whole pages.
  static std::uint64_t room_for(const ObjectVersion& version, UnitRange units);
  // A place for an object that has none.
  Result<std::unique_ptr<StoredObject>> create(const ObjectVersion& version);
  // Unlinks an object whole. Those who have it open go on reading.
  Status remove(const ObjectDigest& digest);
  // The version that something on the disk describes, for whoever has only the digest.
  Result<ObjectVersion> version_of(const ObjectDigest& digest);
  // Frees one block of an object that nobody uses.
  Status free_block(const ObjectDigest& digest, std::uint32_t block);
  // Reports that an object is damaged beyond use, and removes it.
  void discard(const ObjectDigest& digest, const Status& why);
  // Opens the data file of a large object for reading, to be handed out.
  Result<std::unique_ptr<DiskFile>> open_for_reading(const ObjectDigest& digest);

  // All objects on the disk, the small ones first and of these the oldest first; not those that
  // come or go meanwhile. The visitor returns false to end it, and may call the directory.
  enum class OnDisk : std::uint8_t {
    kWhole,
    kWithoutMap,  // A kill has left data, or the object is being made just now.
  };
  using Visitor = std::function<bool(const ObjectDigest&, OnDisk)>;
  Status for_each_object(const Visitor& visitor);
  // Enters an object that nobody uses into the books.
  void count(const ObjectDigest& digest);
  // All that was there at the start is in the books.
  void all_counted();
  // Removes data without a map, of an object that nobody uses.
  void remove_orphan(const ObjectDigest& digest);

  // False for a while after a write has failed.
  bool may_write() const;
  // Tells the operator, once per pause.
  void note_write_failure(const Status& why);
  // Takes account of what others have put onto the disk.
  void refresh_limit();

 private:
  CacheDirectory(Disk& disk, CacheDirectoryOptions options, Clock& clock, Metrics& metrics,
                 std::unique_ptr<DiskLock> lock);
  Status prepare();
  void set_limit(const DiskSpace& space);
  std::string stem(const ObjectDigest& digest) const;
  // What is read and written through the result is plain.
  std::unique_ptr<StoredObject> decrypted(std::unique_ptr<StoredObject> stored,
                                          const ObjectVersion& version);
  Loaded load_large(const ObjectVersion& version);
  Loaded load_small(const ObjectVersion& version);
  static bool visit_fan(const std::vector<DirectoryEntry>& entries, const Visitor& visitor);
  void note_found(const ObjectVersion& version, const std::vector<std::uint32_t>& recorded);
  void report_damage(std::string_view what, std::string_view where, std::uint64_t count);

  // Constant after construction.
  Disk& disk_;
  const CacheDirectoryOptions options_;
  Clock& clock_;
  Counter& bad_records_;
  const std::unique_ptr<DiskLock> lock_;
  std::shared_ptr<SegmentStore> segments_;
  std::uint64_t quota_bytes_ = 0;

  // Synchronise themselves.
  CacheSpace space_;
  LeaseTable leases_;
  std::atomic<TimePoint> no_writes_before_{};
  std::atomic<bool> counted_ = false;  // All that was there at the start is in the books.
};

}  // namespace millrace
