#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::testing {

struct CephOptions {
  bool tls = false;                        // Also serve https, with a certificate of its own.
  bool bluestore = false;                  // On disk, for more than a few GiB of objects.
  std::uint64_t store_bytes = 4ULL << 30;  // Size of the store.
  int start_attempts_max = 3;
};

// A Ceph cluster of one (mon, osd, radosgw) on 127.0.0.1, started by tools/ceph in a directory of
// its own under /tmp, which is removed at the end.
//
// Lifecycle: the constructor returns when the gateway serves requests (1-2 s) and throws
// std::runtime_error with the reason and the end of the log otherwise, which fails a test. The
// destructor stops the cluster; when this process dies without it, a watchdog of tools/ceph does.
//
// Concurrency: the accessors are safe from any thread. The methods that change the gateway must not
// run at the same time as each other.
class CephServer {
 public:
  explicit CephServer(const CephOptions& options = {});
  ~CephServer();
  CephServer(const CephServer&) = delete;
  CephServer& operator=(const CephServer&) = delete;

  // One instance per process: started by the first call, stopped at exit. Has a bucket named
  // kSharedBucket. When the start failed, every call throws the same reason without a new try.
  static CephServer& shared();
  static constexpr std::string_view kSharedBucket = "millrace-test";

  const std::string& endpoint() const { return endpoint_; }          // "http://127.0.0.1:PORT"
  const std::string& tls_endpoint() const { return tls_endpoint_; }  // Empty without options.tls.
  std::string ca_file() const { return directory_ + "/tls.crt"; }    // For tls_endpoint().
  const std::string& access_key() const { return access_key_; }
  const std::string& secret_key() const { return secret_key_; }
  static constexpr std::string_view kRegion = "us-east-1";
  const std::string& directory() const { return directory_; }

  // Creates a bucket, or leaves one that exists. Throws std::runtime_error on any other answer.
  void create_bucket(std::string_view name);

  // Beyond this many requests at once the gateway answers a real 503 SlowDown.
  void set_max_concurrent_requests(int count);
  static constexpr int kDefaultMaxConcurrentRequests = 1024;

  // kill -9: connections break off, and new ones are refused.
  void kill_gateway();
  // Starts the gateway on the same port and returns when it serves. Objects are still there.
  void restart_gateway();

 private:
  void start(const CephOptions& options);

  pid_t owner_;  // A forked child must not stop the cluster when it exits.
  std::string directory_;
  std::string endpoint_;
  std::string tls_endpoint_;
  std::string access_key_ = "millrace";
  std::string secret_key_ = "millrace-secret";
};

}  // namespace millrace::testing
