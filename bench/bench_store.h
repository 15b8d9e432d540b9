#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "metrics/metrics.h"
#include "objectstore/retry_control.h"
#include "objectstore/s3/s3_object_store.h"
#include "platform/curl_http_client.h"
#include "tests/servers/ceph_server.h"

namespace millrace::bench {

// A bucket to measure against.
struct BenchTarget {
  std::string server;  // For the names of results: "nginx", "ceph".
  std::string endpoint;
  std::string bucket;
  std::string access_key = "millrace";
  std::string secret_key = "millrace-secret";
  // Whether the server looks at signatures. We sign for all; curl only where it must.
  bool checks_signatures = false;
  std::string ca_file = {};  // What an https endpoint's certificate is checked against.

  std::string url_of(const std::string& key) const { return endpoint + "/" + bucket + "/" + key; }
};

BenchTarget target_of(const millrace::testing::CephServer& ceph, std::string bucket);
// The same over https; the server was started with it.
BenchTarget tls_target_of(const millrace::testing::CephServer& ceph, std::string bucket);

// An S3 store with everything under it and defaults throughout, alive as long as this is. Timed
// runs make a new one each, because the peers begin without connections too.
class BenchStore {
 public:
  BenchStore(const BenchTarget& target, std::size_t loops, std::uint64_t pool_bytes);
  // Into somebody else's pool, which outlives it.
  BenchStore(const BenchTarget& target, std::size_t loops, BufferPool& pool);
  ~BenchStore();

  s3::S3ObjectStore& store() { return *store_; }
  BufferPool& pool() { return pool_; }

 private:
  BenchStore(const BenchTarget& target, std::size_t loops, std::unique_ptr<BufferPool> pool);

  Metrics metrics_;
  std::unique_ptr<BufferPool> own_pool_;
  BufferPool& pool_;
  CurlHttpClient http_;
  std::unique_ptr<s3::S3ObjectStore> store_;
};

// A context for one run: long enough for any, so that a hang becomes a failure.
RequestContext run_context();

// Throws std::runtime_error with the status's words unless it is success.
[[noreturn]] void give_up(const Status& status);
inline void require(const Status& status) {
  if (!status.ok()) give_up(status);
}
template <class T>
T require(Result<T> result) {
  if (!result) give_up(result.error());
  return std::move(*result);
}

}  // namespace millrace::bench
