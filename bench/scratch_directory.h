#pragma once

#include <string>

namespace millrace::bench {

// A directory in memory, so that no disk is measured; removed with all in it at the end. It lies
// under MILLRACE_BENCH_SCRATCH (tools/bench sets it, and cleans up after a Ctrl-C), else /dev/shm,
// else /tmp.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace millrace::bench
