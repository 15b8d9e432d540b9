#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/bench_store.h"
#include "tests/servers/child_process.h"

namespace millrace::bench {

// A bucket mounted by somebody else's program, with a cache on disk and tuned for reading as its
// documentation says. Unmounted at the end.
class PeerMount {
 public:
  enum class Program { kS3fs, kRclone };
  static constexpr Program kAll[] = {Program::kS3fs, Program::kRclone};
  static std::string name(Program program);

  // Mounts with a cache that is empty, below `root`, which is made. Throws std::runtime_error when
  // the program is not installed or does not mount within 30 seconds.
  PeerMount(Program program, const BenchTarget& target, const std::string& root);
  ~PeerMount();
  PeerMount(const PeerMount&) = delete;
  PeerMount& operator=(const PeerMount&) = delete;

  const std::string& mount_point() const { return mount_point_; }
  // Of its process since it started.
  double cpu_s() const;

 private:
  const std::string mount_point_;
  std::unique_ptr<millrace::testing::ChildProcess> process_;
};

}  // namespace millrace::bench
