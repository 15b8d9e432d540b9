#pragma once

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/mutex.h"
#include "dataset/source_tree.h"
#include "objectstore/object_store.h"

namespace millrace {

// A directory of its own for each test, with a short way to fill it.
class ScratchTree {
 public:
  explicit ScratchTree(const std::string& where = ::testing::TempDir()) {
    std::string pattern = where + "millrace-source-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
  }
  ~ScratchTree() { std::filesystem::remove_all(root_); }
  ScratchTree(const ScratchTree&) = delete;
  ScratchTree& operator=(const ScratchTree&) = delete;

  const std::string& root() const { return root_; }
  std::string path(std::string_view name) const { return root_ + "/" + std::string(name); }

  void make_directory(std::string_view name) const {
    std::filesystem::create_directories(path(name));
  }
  // With the directories above it.
  void write(std::string_view name, std::string_view text) const {
    const std::filesystem::path file(path(name));
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary | std::ios::trunc) << text;
  }
  void link(std::string_view name, std::string_view target) const {
    std::filesystem::create_symlink(std::string(target), path(name));
  }
  void set_mode(std::string_view name, mode_t mode) const { ::chmod(path(name).c_str(), mode); }
  void set_mtime(std::string_view name, std::int64_t mtime_ns) const {
    const auto second = std::int64_t{1'000'000'000};
    timespec times[2];
    times[0].tv_sec = times[1].tv_sec = mtime_ns / second;
    times[0].tv_nsec = times[1].tv_nsec = mtime_ns % second;
    ::utimensat(AT_FDCWD, path(name).c_str(), times, AT_SYMLINK_NOFOLLOW);
  }

 private:
  std::string root_;
};

// What a scan gave, by path.
class CollectedSource final : public SourceSink {
 public:
  Status take(std::span<SourceEntry> entries) override {
    MutexLock lock(mutex_);
    for (SourceEntry& entry : entries) {
      std::string path = entry.path;
      EXPECT_TRUE(entries_.emplace(path, std::move(entry)).second) << path << " came twice";
    }
    return {};
  }
  Status report(SourceProblem problem) override {
    MutexLock lock(mutex_);
    EXPECT_TRUE(problems_.emplace(problem.path, problem.reason).second) << problem.path;
    return {};
  }

  // For use after the scan.
  const std::map<std::string, SourceEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& problems() const { return problems_; }
  const SourceEntry& at(const std::string& path) const { return entries_.at(path); }

 private:
  Mutex mutex_;
  std::map<std::string, SourceEntry> entries_;
  std::map<std::string, std::string> problems_;
};

inline std::unique_ptr<CollectedSource> scan_all(SourceTree& source) {
  auto collected = std::make_unique<CollectedSource>();
  const Status status = source.scan(RequestContext::background(), *collected);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return collected;
}

// All bytes of a file, as far as its size in the entry, or the failure.
inline Result<std::string> read_source(SourceTree& source, const SourceEntry& entry) {
  const RequestContext context = RequestContext::background();
  MR_ASSIGN_OR_RETURN(const auto file, source.open(context, entry));
  std::string text(entry.size, '\0');
  MR_ASSIGN_OR_RETURN(const std::size_t filled,
                      file->read_at(context, 0, std::as_writable_bytes(std::span(text))));
  text.resize(filled);
  MR_ASSIGN_OR_RETURN(const bool unchanged, file->unchanged(context));
  if (!unchanged) return failure(source_changed(entry.path, "seen by unchanged()"));
  return text;
}

}  // namespace millrace
