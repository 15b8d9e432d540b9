#include "bench/tree_readers.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "base/bytes.h"
#include "bench/client_usage.h"

namespace millrace::bench {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

// How much it read; nothing when it cannot be opened or read, or has another length. Stops early
// after `until`. The descriptor's own calls, with nothing of ours between but the time.
std::optional<std::uint64_t> read_until(const std::string& path, std::uint64_t file_bytes,
                                        std::vector<char>& piece, TimePoint until) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::uint64_t bytes = 0;
  ssize_t got = 0;
  bool is_late = false;
  while (!is_late && (got = ::read(file, piece.data(), piece.size())) > 0) {
    bytes += static_cast<std::uint64_t>(got);
    is_late = until != TimePoint::max() && std::chrono::steady_clock::now() > until;
  }
  ::close(file);
  if (!is_late && (got != 0 || bytes != file_bytes)) return std::nullopt;
  return bytes;
}

bool read_to_end(const std::string& path, std::uint64_t file_bytes, std::vector<char>& piece) {
  return read_until(path, file_bytes, piece, TimePoint::max()).has_value();
}

RunFigures read_one(const std::string& path, std::uint64_t file_bytes, TimePoint until) {
  std::vector<char> piece(kMiB);
  const ClientUsage usage;
  const std::optional<std::uint64_t> bytes = read_until(path, file_bytes, piece, until);
  if (!bytes) throw std::runtime_error(path + " was not read whole");
  return usage.figures(static_cast<double>(*bytes));
}

}  // namespace

std::vector<std::string> tree_files(const std::string& root, std::uint64_t files_max) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) files.push_back(entry.path().string().substr(root.size() + 1));
  }
  std::ranges::sort(files);
  files.resize(std::min<std::uint64_t>(files.size(), files_max));
  return files;
}

std::vector<std::string> shuffled(std::vector<std::string> files) {
  std::mt19937_64 random(1);
  std::ranges::shuffle(files, random);
  return files;
}

RunFigures read_files(const std::string& root, const std::vector<std::string>& files,
                      std::uint64_t file_bytes, unsigned readers) {
  std::atomic<std::size_t> next = 0;
  std::atomic<std::size_t> failed = 0;
  const ClientUsage usage;
  std::vector<std::jthread> threads;
  for (unsigned n = 0; n < readers; ++n) {
    threads.emplace_back([&] {
      std::vector<char> piece(kMiB);
      for (std::size_t at = next++; at < files.size(); at = next++) {
        if (!read_to_end(root + "/" + files[at], file_bytes, piece)) ++failed;
      }
    });
  }
  threads.clear();
  if (failed > 0) {
    throw std::runtime_error(
        fmt::format("{} files of {} were not read whole", failed.load(), root));
  }
  return usage.figures(static_cast<double>(files.size()));
}

RunFigures read_file(const std::string& path, std::uint64_t file_bytes) {
  return read_one(path, file_bytes, TimePoint::max());
}

RunFigures read_file_for(const std::string& path, std::uint64_t file_bytes,
                         std::chrono::seconds time_max) {
  return read_one(path, file_bytes, std::chrono::steady_clock::now() + time_max);
}

}  // namespace millrace::bench
