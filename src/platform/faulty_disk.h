#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "base/mutex.h"
#include "platform/disk.h"

namespace millrace {

enum class DiskOperation : std::uint8_t {
  kOpen,
  kRename,
  kRemove,
  kList,
  kMakeDirectories,
  kSyncDirectory,
  kStat,
  kSpace,
  kLock,
  kRead,
  kWrite,
  kSync,
  kPunch,
  kTruncate,
  kSize,
};

struct DiskCall {
  DiskOperation operation;
  std::string_view path;
  // How many calls came before it on this disk and its files.
  std::uint64_t index = 0;
};

// Decides about each call: 0 lets it pass, else it fails with this errno (EIO, ENOSPC, EROFS, ...).
// May be called from several threads at once.
using DiskFault = std::function<int(const DiskCall&)>;

// The n-th call from when the fault is set (0 is the next one) fails; with `for_ever` all after it
// as well, as on a disk that has died.
DiskFault fail_nth_call(std::uint64_t n, int error, bool for_ever = false);
// Each call fails with this probability, drawn from the seed.
DiskFault fail_randomly(double probability, std::uint64_t seed, int error);
// What changes nothing passes; everything else fails with EROFS.
DiskFault read_only_disk();

// A disk whose calls fail on demand; without a fault it is the disk inside, but for descriptors:
// its files have none, since nobody could inject faults into what goes around them.
//
// A failed call does not reach the disk inside, with one exception: a failed write leaves the first
// half of its bytes, as a full disk does. Safe from any thread. The disk inside must outlive it.
class FaultyDisk final : public Disk {
 public:
  explicit FaultyDisk(Disk& inner) : inner_(inner) {}

  // Replaces the fault; an empty one lets all calls pass.
  void set_fault(DiskFault fault);
  // Calls seen so far, on the disk and on its files, those that failed included.
  std::uint64_t calls() const { return calls_.load(); }
  std::uint64_t faults() const { return faults_.load(); }

  Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) override;
  Status rename(const std::string& from, const std::string& to, Replace replace) override;
  Status remove(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Status make_directories(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<FileFacts> stat(const std::string& path) override;
  Result<DiskSpace> space(const std::string& path) override;
  Result<std::unique_ptr<DiskLock>> lock(const std::string& path, std::string_view owner) override;

 private:
  class FaultyFile;
  Status check(DiskOperation operation, std::string_view path);

  Disk& inner_;
  std::atomic<std::uint64_t> calls_ = 0;
  std::atomic<std::uint64_t> faults_ = 0;

  Mutex mutex_;
  // Shared, so that a call can ask it without holding the lock.
  std::shared_ptr<const DiskFault> fault_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
