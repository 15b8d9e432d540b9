#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "platform/disk.h"

namespace millrace {

// A disk in memory that forgets, at a simulated power loss, what nobody synced.
//
// Invariants of what a power loss leaves behind:
//  1. Everything that was synced is there: content by DiskFile::sync, names by sync_directory. A
//     file whose content was synced but whose name was not may be gone, and the other way round.
//  2. Each write and punch since the last sync is kept, lost, torn at 512-byte sectors, or, as a
//     write, has only grown the file (zeros): independently of the others, in particular of its
//     order among them.
//  3. Each creation, removal and rename since then is kept or undone whole, as by a journalling
//     file system: a rename never loses both names. Operations on different names are independent;
//     those on one name are undone from the last.
//
// A path starts at the root with or without '/'. All methods are safe from any thread. Files and
// locks must not outlive the disk.
class MemoryDisk final : public Disk {
 public:
  explicit MemoryDisk(std::uint64_t total_bytes = kTiB);
  ~MemoryDisk() override;

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

  // Cuts the power and starts again. The same seed and history leave the same disk. Files that were
  // open fail with kIoError from now on, and locks are gone.
  void simulate_power_loss(std::uint64_t seed);

 private:
  struct State;
  class OpenFile;
  class OpenLock;
  std::unique_ptr<State> state_;
};

}  // namespace millrace
