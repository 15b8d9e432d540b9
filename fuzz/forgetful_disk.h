#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "platform/disk.h"

namespace millrace {

// A disk on which all succeeds and nothing stays: for state that is made anew for each input, where
// a disk in memory would be most of the work.
class ForgetfulDisk final : public Disk {
 public:
  Result<std::unique_ptr<DiskFile>> open(const std::string& path, OpenMode mode) override {
    if (mode == OpenMode::kRead) return failure(absent(path));
    return std::make_unique<OpenFile>(path);
  }
  Status rename(const std::string& /*from*/, const std::string& /*to*/,
                Replace /*replace*/) override {
    return {};
  }
  Status remove(const std::string& /*path*/) override { return {}; }
  Result<std::vector<DirectoryEntry>> list(const std::string& /*path*/) override {
    return std::vector<DirectoryEntry>();
  }
  Status make_directories(const std::string& /*path*/) override { return {}; }
  Status make_directory(const std::string& /*path*/) override { return {}; }
  Status sync_directory(const std::string& /*path*/) override { return {}; }
  Result<FileFacts> stat(const std::string& path) override { return failure(absent(path)); }
  Result<DiskSpace> space(const std::string& /*path*/) override { return DiskSpace(); }
  Result<std::unique_ptr<DiskLock>> lock(const std::string& path,
                                         std::string_view /*owner*/) override {
    return failure(StatusCode::kUnsupported, path);
  }

 private:
  class OpenFile final : public DiskFile {
   public:
    explicit OpenFile(std::string path) : path_(std::move(path)) {}
    Result<std::size_t> read_at(std::uint64_t /*offset*/, MutableByteView /*into*/) override {
      return 0;
    }
    Result<bool> read_now(std::uint64_t /*offset*/, MutableByteView /*into*/) override {
      return false;
    }
    Status write_at(std::uint64_t /*offset*/, ByteView /*from*/) override { return {}; }
    Status write_past_cache(std::uint64_t /*offset*/, ByteView /*from*/) override { return {}; }
    Status punch(std::uint64_t /*offset*/, std::uint64_t /*length*/) override { return {}; }
    Status sync() override { return {}; }
    Status truncate(std::uint64_t /*size*/) override { return {}; }
    Result<std::uint64_t> size() override { return 0; }
    std::optional<int> descriptor() const override { return std::nullopt; }
    const std::string& path() const override { return path_; }

   private:
    const std::string path_;
  };

  static Status absent(const std::string& path) { return {StatusCode::kNotFound, path}; }
};

}  // namespace millrace
