#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

// Files of one size in directories of a thousand, as a data set of pictures has them. No two are
// alike, so nothing is shared between them.
class PublishTree {
 public:
  static constexpr std::uint64_t kFilesInDirectory = 1000;

  // Writes `files` of `file_bytes` each below `root`, which is made. Throws std::runtime_error when
  // they cannot be written.
  PublishTree(std::string root, std::uint64_t files, std::uint64_t file_bytes);

  const std::string& root() const { return root_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::uint64_t bytes() const { return files_ * file_bytes_; }
  std::string directory(std::uint64_t number) const;

  // Gives every `nth` file other bytes. Returns how many bytes that were.
  std::uint64_t change_every(std::uint64_t nth);

 private:
  void write(std::uint64_t file);

  const std::string root_;
  const std::uint64_t files_;
  const std::uint64_t file_bytes_;
  std::string content_;
  std::uint64_t writes_ = 0;
};

}  // namespace millrace::bench
