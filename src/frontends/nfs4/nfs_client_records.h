#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"
#include "platform/disk.h"

namespace millrace {

// The owners of the clients that hold state here, in a file (docs/formats/nfs.md): after a restart
// they may claim what they had, and nobody else may.
//
// Invariants:
//  1. An owner that was added survives a power loss once add() has succeeded.
//  2. A removed owner may come back by one, which costs nothing but a claim that need not be
//     granted.
//
// All methods are safe from any thread; add, remove and open block. The disk outlives it.
class NfsClientRecords {
 public:
  // Reads `path`, whose directory exists, made when absent. Torn and damaged lines are dropped; a
  // file that is no such file is kCorruption, and left alone.
  static Result<std::unique_ptr<NfsClientRecords>> open(Disk& disk, std::string path);

  bool contains(const std::string& owner) const MR_EXCLUDES(mutex_);
  std::set<std::string> owners() const MR_EXCLUDES(mutex_);
  // Success when it is there already.
  Status add(const std::string& owner) MR_EXCLUDES(mutex_);
  Status remove(const std::string& owner) MR_EXCLUDES(mutex_);

 private:
  NfsClientRecords(Disk& disk, std::string path) : disk_(disk), path_(std::move(path)) {}
  Status load() MR_EXCLUDES(mutex_);
  Status append(std::string_view line) MR_REQUIRES(mutex_);
  Status rewrite() MR_REQUIRES(mutex_);

  Disk& disk_;
  const std::string path_;
  mutable Mutex mutex_;
  std::set<std::string> owners_ MR_GUARDED_BY(mutex_);
  // Null when the file does not say what owners_ does: then it is written anew.
  std::unique_ptr<DiskFile> file_ MR_GUARDED_BY(mutex_);
  std::uint64_t file_bytes_ MR_GUARDED_BY(mutex_) = 0;
  std::size_t file_lines_ MR_GUARDED_BY(mutex_) = 0;
};

}  // namespace millrace
