#include "bench/scratch_directory.h"

#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace millrace::bench {
namespace {

std::string parent(ScratchDirectory::Kind kind) {
  if (kind == ScratchDirectory::Kind::kDisk) {
    const char* given = ::getenv("MILLRACE_BENCH_DISK");
    return given != nullptr ? given : "/var/tmp";
  }
  if (const char* given = ::getenv("MILLRACE_BENCH_SCRATCH"); given != nullptr) return given;
  return ::access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
}

}  // namespace

ScratchDirectory::ScratchDirectory(Kind kind) : path_(parent(kind) + "/millrace-bench-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::uint64_t memory_store_bytes_max() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) / 8;
}

}  // namespace millrace::bench
