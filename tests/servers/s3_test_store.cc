#include "tests/servers/s3_test_store.h"

#include <utility>

#include "objectstore/retrying_object_store.h"
#include "objectstore/s3/static_credentials.h"

namespace millrace::s3 {

S3TestTarget target_of(const millrace::testing::StrictS3Server& server) {
  const millrace::testing::S3Credentials credentials;
  return {server.url(), "test-bucket", credentials.access_key, credentials.secret_key, ""};
}

S3TestTarget ceph_target(const std::string& endpoint) {
  const auto& ceph = millrace::testing::CephServer::shared();
  return {endpoint, std::string(millrace::testing::CephServer::kSharedBucket), ceph.access_key(),
          ceph.secret_key(), ""};
}

S3TestStore::S3TestStore(const S3TestTarget& target, S3Options options, RetryPolicy policy,
                         CurlHttpClientOptions http_options)
    : timers_({.name = "timers", .threads = 2}),
      http_(std::move(http_options)),
      control_(std::make_shared<RetryControl>(policy, system_clock(), system_random(), metrics_)) {
  options.endpoint = target.endpoint;
  options.bucket = target.bucket;
  Credentials keys;
  keys.access_key = target.access_key;
  keys.secret_key = target.secret_key;
  keys.session_token = target.session_token;
  keys.source = "test";
  auto credentials = std::make_shared<CachedCredentials>(
      std::make_unique<StaticCredentials>(std::move(keys)), system_clock(), system_random());
  raw_ = std::make_shared<S3ObjectStore>(
      std::move(options), std::move(credentials),
      S3Environment{http_, system_clock(), system_random(), nullptr}, control_);
  retrying_ = std::make_shared<RetryingObjectStore>(raw_, control_, timers_);
}

S3TestStore::~S3TestStore() = default;

}  // namespace millrace::s3
