#include "bench/publish_tree.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

namespace millrace::bench {

PublishTree::PublishTree(std::string root, std::uint64_t files, std::uint64_t file_bytes)
    : root_(std::move(root)), files_(files), file_bytes_(file_bytes), content_(file_bytes, '\0') {
  std::mt19937_64 random(1);
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= content_.size();
       at += sizeof(std::uint64_t)) {
    const std::uint64_t word = random();
    std::memcpy(content_.data() + at, &word, sizeof word);
  }
  for (std::uint64_t file = 0; file < files_; file += kFilesInDirectory)
    std::filesystem::create_directories(directory(file / kFilesInDirectory));
  for (std::uint64_t file = 0; file < files_; ++file)
    write(file);
}

std::string PublishTree::directory(std::uint64_t number) const {
  return fmt::format("{}/n{:08}", root_, number);
}

std::uint64_t PublishTree::change_every(std::uint64_t nth) {
  std::uint64_t changed_bytes = 0;
  for (std::uint64_t file = 0; file < files_; file += nth) {
    write(file);
    changed_bytes += file_bytes_;
  }
  return changed_bytes;
}

void PublishTree::write(std::uint64_t file) {
  const std::string path = fmt::format("{}/{:08}.jpeg", directory(file / kFilesInDirectory), file);
  // Enough to make it unlike every other one: nothing below compares or compresses content.
  std::memcpy(content_.data(), &++writes_, sizeof writes_);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content_.data(), static_cast<std::streamsize>(content_.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace millrace::bench
