#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "dataset/source_tree.h"
#include "platform/digest.h"
#include "platform/file.h"

namespace millrace {

// The hashes of the files of one source as its last publish met them, in a local file, so that the
// next version need not read again what did not change. A hash counts for a file only while path,
// size, time and token (for a local file: inode and change time) are all the same.
//
// It is a cache: a missing, torn or foreign file knows nothing, and that is no error.

// Reads them in the order of the manifest, beside a scan in that order. Needs one thread at a time.
class KnownFilesReader {
 public:
  static KnownFilesReader open(const std::string& path);

  // Files are asked for in order. Nothing when the file is not known as it is.
  std::optional<Sha256Digest> find(const SourceEntry& file);

 private:
  struct Known {
    std::string path = {};
    std::uint64_t size = 0;
    std::int64_t mtime_ns = 0;
    std::string token = {};
    Sha256Digest hash{};
  };
  explicit KnownFilesReader(File file) : file_(std::move(file)) {}
  // False at the end, and at whatever is no record.
  bool next();
  ByteView take(std::size_t count);

  File file_;
  std::vector<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t position_ = 0;
  bool more_ = true;
  Known known_;
};

// Writes a new list, which replaces the old one at the end. Needs one thread at a time.
class KnownFilesWriter {
 public:
  static Result<std::unique_ptr<KnownFilesWriter>> create(const std::string& path);
  ~KnownFilesWriter();

  Status add(const SourceEntry& file, const Sha256Digest& hash);
  Status finish();

 private:
  KnownFilesWriter(File file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Status flush();

  const File file_;
  const std::string path_;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  bool finished_ = false;
};

}  // namespace millrace
