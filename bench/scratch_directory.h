#pragma once

#include <cstdint>
#include <string>

namespace millrace::bench {

// A directory that is removed with all in it at the end. tools/bench says where, and cleans up
// after a Ctrl-C.
class ScratchDirectory {
 public:
  enum class Kind {
    kMemory,  // So that no disk is measured: MILLRACE_BENCH_SCRATCH, else /dev/shm, else /tmp.
    kDisk,    // On a file system for caches: MILLRACE_BENCH_DISK, else /var/tmp.
  };
  explicit ScratchDirectory(Kind kind = Kind::kMemory);
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// What a store in memory may be given, an eighth of the machine's: with the files that go into it,
// copies of them and what it has not freed yet it takes several times as much.
std::uint64_t memory_store_bytes_max();

}  // namespace millrace::bench
