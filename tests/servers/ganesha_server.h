#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/servers/child_process.h"

namespace millrace::testing {

// nfs-ganesha serving a directory on 127.0.0.1 as /data, read only, by its VFS back end: what our
// NFS server is compared with. Needs root, as that back end opens files by their handles.
//
// Lifecycle: the constructor returns when it serves, and throws std::runtime_error with ganesha's
// own words otherwise. The destructor stops it and removes its private files.
class GaneshaServer {
 public:
  explicit GaneshaServer(const std::string& root);
  ~GaneshaServer();
  GaneshaServer(const GaneshaServer&) = delete;
  GaneshaServer& operator=(const GaneshaServer&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return process_->pid(); }

 private:
  bool start();

  std::string directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace millrace::testing
