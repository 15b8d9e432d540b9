#include "tests/objectstore/contract_suite.h"
#include "tests/servers/fault_proxy.h"
#include "tests/servers/s3_test_store.h"

// The contract of ObjectStore, kept by the S3 back end: on our strict server, on Ceph, and on Ceph
// behind a proxy that breaks one request in ten.
namespace millrace {
namespace {

using millrace::testing::CephServer;
using millrace::testing::FaultProxy;
using millrace::testing::StrictS3Server;
using s3::ceph_target;
using s3::S3TestStore;
using s3::target_of;

constexpr std::size_t kPartBytes = 5 * kMiB;

// Keeps everything that a store stands on alive as long as the store.
template <class... Parts>
std::shared_ptr<ObjectStore> holding(ObjectStore& store, std::shared_ptr<Parts>... parts) {
  return {&store, [... parts = std::move(parts)](ObjectStore*) {}};
}

s3::S3Options five_mib_parts() {
  s3::S3Options options;
  options.part_bytes = kPartBytes;
  return options;
}

RetryPolicy patient() {
  RetryPolicy policy;
  policy.attempts_max = 20;
  policy.backoff_base = std::chrono::milliseconds(1);
  policy.backoff_max = std::chrono::milliseconds(20);
  policy.pause_base = std::chrono::milliseconds(1);
  policy.pause_max = std::chrono::milliseconds(10);
  policy.tokens_max = 1'000'000;
  return policy;
}

std::shared_ptr<ObjectStore> on_strict_server() {
  static const auto server = std::make_shared<StrictS3Server>();
  auto store = std::make_shared<S3TestStore>(target_of(*server), five_mib_parts());
  return holding(store->raw(), server, store);
}

std::shared_ptr<ObjectStore> on_ceph() {
  auto store =
      std::make_shared<S3TestStore>(ceph_target(CephServer::shared().endpoint()), five_mib_parts());
  return holding(store->retrying(), store);
}

std::shared_ptr<ObjectStore> on_broken_ceph() {
  auto proxy = std::make_shared<FaultProxy>(CephServer::shared().endpoint());
  // Bit flips are for the torture test, which knows which requests can notice them.
  auto faults = testing::random_faults(7, 0.1, testing::all_faults({.honest_bytes = true}));
  proxy->set_policy([faults](const testing::ProxiedRequest& request) {
    const testing::Fault fault = faults(request);
    // Nobody can tell a wrong ETag in the answer to a write from the right one.
    const bool believed = fault == testing::Fault::kChangedEtag && request.method != "GET";
    return believed ? testing::Fault::kNone : fault;
  });
  CurlHttpClientOptions http;
  http.stall_bytes_per_second = 1000;
  http.stall_window = std::chrono::seconds(1);
  auto store = std::make_shared<S3TestStore>(ceph_target(proxy->endpoint()), five_mib_parts(),
                                             patient(), http);
  return holding(store->retrying(), proxy, store);
}

// Ceph 16 refuses an equal quoted ETag in If-Match, and completions ignore conditions; the back end
// makes up for both, so only XML's limits remain.
constexpr ContractTraits kCeph = {
    .control_characters_in_keys = false, .part_bytes = kPartBytes, .list_keys = 100};

INSTANTIATE_TEST_SUITE_P(
    S3, ObjectStoreContract,
    ::testing::Values(ContractTarget{"strict_server", on_strict_server, {.part_bytes = kPartBytes}},
                      ContractTarget{"ceph", on_ceph, kCeph},
                      ContractTarget{"ceph_behind_faults", on_broken_ceph, kCeph}),
    contract_target_name);

}  // namespace
}  // namespace millrace
