#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "tests/servers/child_process.h"

namespace millrace::testing {

struct NginxOptions {
  int workers = 1;
  std::uint64_t limit_rate_bytes_per_second = 0;  // Per connection; 0: unlimited.
};

// nginx serving a directory on 127.0.0.1 as a fast read-only store: GET with ranges, HEAD. It
// ignores signatures. http://127.0.0.1:PORT/a/b is the file a/b of the directory, so a path-style
// bucket is a first-level directory.
//
// Lifecycle: the constructor returns when nginx accepts connections, and throws std::runtime_error
// with nginx's own words otherwise. The destructor stops it and removes its private files; the
// served directory stays. nginx also ends when the thread that constructed this object ends.
class NginxServer {
 public:
  explicit NginxServer(std::string root, const NginxOptions& options = {});
  ~NginxServer();
  NginxServer(const NginxServer&) = delete;
  NginxServer& operator=(const NginxServer&) = delete;

  const std::string& endpoint() const { return endpoint_; }  // "http://127.0.0.1:PORT"
  std::uint16_t port() const { return port_; }

 private:
  void write_config(const std::string& root, const NginxOptions& options) const;
  bool start();

  std::string directory_;
  std::string endpoint_;
  std::uint16_t port_ = 0;
  std::unique_ptr<ChildProcess> process_;
};

}  // namespace millrace::testing
