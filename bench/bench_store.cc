#include "bench/bench_store.h"

#include <chrono>
#include <stdexcept>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "objectstore/s3/static_credentials.h"

namespace millrace::bench {
namespace {

constexpr Duration kRunTimeMax = std::chrono::minutes(2);

std::shared_ptr<s3::CachedCredentials> credentials_of(const BenchTarget& target) {
  s3::Credentials keys;
  keys.access_key = target.access_key;
  keys.secret_key = target.secret_key;
  keys.source = "benchmark";
  return std::make_shared<s3::CachedCredentials>(
      std::make_unique<s3::StaticCredentials>(std::move(keys)), system_clock(), system_random());
}

CurlHttpClientOptions http_options(std::size_t loops) {
  CurlHttpClientOptions options;
  options.loops = loops;
  return options;
}

}  // namespace

BenchTarget target_of(const millrace::testing::CephServer& ceph, std::string bucket) {
  return {.server = "ceph",
          .endpoint = ceph.endpoint(),
          .bucket = std::move(bucket),
          .access_key = ceph.access_key(),
          .secret_key = ceph.secret_key(),
          .checks_signatures = true};
}

BenchTarget tls_target_of(const millrace::testing::CephServer& ceph, std::string bucket) {
  BenchTarget target = target_of(ceph, std::move(bucket));
  target.endpoint = ceph.tls_endpoint();
  target.ca_file = ceph.ca_file();
  return target;
}

BenchStore::BenchStore(const BenchTarget& target, std::size_t loops, std::uint64_t pool_bytes)
    : BenchStore(target, loops,
                 std::make_unique<BufferPool>(
                     BufferPoolOptions{.bytes_max = pool_bytes, .idle_bytes_max = pool_bytes})) {}

BenchStore::BenchStore(const BenchTarget& target, std::size_t loops,
                       std::unique_ptr<BufferPool> pool)
    : BenchStore(target, loops, *pool) {
  own_pool_ = std::move(pool);
}

BenchStore::BenchStore(const BenchTarget& target, std::size_t loops, BufferPool& pool)
    : pool_(pool), http_(http_options(loops)) {
  s3::S3Options options;
  options.endpoint = target.endpoint;
  options.bucket = target.bucket;
  options.ca_bundle = target.ca_file;
  store_ = std::make_unique<s3::S3ObjectStore>(
      std::move(options), credentials_of(target),
      s3::S3Environment{http_, system_clock(), system_random(), &pool},
      std::make_shared<RetryControl>(RetryPolicy{}, system_clock(), system_random(), metrics_));
}

BenchStore::~BenchStore() = default;

RequestContext run_context() {
  return RequestContext(system_clock().now() + kRunTimeMax, "benchmark");
}

void give_up(const Status& status) { throw std::runtime_error(status.to_string()); }

}  // namespace millrace::bench
