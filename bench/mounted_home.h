#pragma once

#include <sys/types.h>

#include <string>

#include "bench/bench_store.h"

namespace millrace::bench {

// The program with a home of its own below `root`: settings, a cache, a daemon and a place to mount
// at. All that it does on disk is on the file system of `root`.
class MountedHome {
 public:
  // Over a directory that it makes below `root`.
  explicit MountedHome(std::string root);
  MountedHome(std::string root, const BenchTarget& target);
  // Unmounts, and stops the daemon.
  ~MountedHome();
  MountedHome(const MountedHome&) = delete;
  MountedHome& operator=(const MountedHome&) = delete;

  // Runs the program with these words for a shell; throws std::runtime_error when it fails.
  void millrace(const std::string& arguments) const;
  // Mounts what the arguments say, with an empty cache and a new daemon if `cold`.
  void mount(const std::string& arguments, bool cold = false);
  void unmount();

  const std::string& root() const { return root_; }
  std::string mount_point() const { return root_ + "/mnt"; }

  pid_t daemon() const;
  // Of the daemon since it started.
  double cpu_s() const;
  double rss_mib_max() const;

 private:
  MountedHome(std::string root, std::string store, std::string environment);
  bool run(const std::string& arguments, const std::string& output) const;

  const std::string root_;
  const std::string environment_;
  bool mounted_ = false;
};

}  // namespace millrace::bench
