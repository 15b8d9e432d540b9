#pragma once

#include "platform/disk.h"

namespace millrace {

// The operating system's file systems. Has no state: one instance serves all directories.
class PosixDisk final : public Disk {
 public:
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
};

}  // namespace millrace
