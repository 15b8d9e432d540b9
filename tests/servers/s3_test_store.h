#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "metrics/metrics.h"
#include "objectstore/object_store.h"
#include "objectstore/retry_control.h"
#include "objectstore/s3/s3_object_store.h"
#include "platform/curl_http_client.h"
#include "tests/servers/ceph_server.h"
#include "tests/servers/strict_s3_server.h"

namespace millrace::s3 {

// Where a test's store is, and how it is used.
struct S3TestTarget {
  std::string endpoint;
  std::string bucket;
  std::string access_key;
  std::string secret_key;
  std::string session_token;
};

S3TestTarget target_of(const millrace::testing::StrictS3Server& server);
// The shared Ceph cluster, seen through `endpoint` (its own, or a proxy's).
S3TestTarget ceph_target(const std::string& endpoint);

// An S3 store with everything under it, alive as long as this is. `raw` makes one attempt per call;
// `retrying` is what users get.
class S3TestStore {
 public:
  explicit S3TestStore(const S3TestTarget& target, S3Options options = {}, RetryPolicy policy = {},
                       CurlHttpClientOptions http_options = {});
  ~S3TestStore();

  S3ObjectStore& raw() { return *raw_; }
  ObjectStore& retrying() { return *retrying_; }
  CurlHttpClient& http() { return http_; }
  Metrics& metrics() { return metrics_; }

 private:
  Metrics metrics_;
  ThreadPool timers_;
  CurlHttpClient http_;
  std::shared_ptr<RetryControl> control_;
  std::shared_ptr<S3ObjectStore> raw_;
  std::shared_ptr<ObjectStore> retrying_;
};

}  // namespace millrace::s3
