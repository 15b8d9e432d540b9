// Every wrapper over the memory store passes the same contract as the memory store itself.

#include "base/thread_pool.h"
#include "objectstore/faulty_object_store.h"
#include "objectstore/memory_object_store.h"
#include "objectstore/metered_object_store.h"
#include "objectstore/prefixed_object_store.h"
#include "objectstore/recording_object_store.h"
#include "objectstore/retrying_object_store.h"
#include "tests/objectstore/contract_suite.h"

namespace millrace {

namespace {

constexpr ContractTraits kSmallParts = {.part_bytes = 64 * kKiB};

Executor& timers() {
  static ThreadPool pool({.name = "timers", .threads = 2, .queued_tasks_max = 1024});
  return pool;
}

Metrics& metrics() {
  static Metrics all;
  return all;
}

std::shared_ptr<ObjectStore> memory() { return std::make_shared<MemoryObjectStore>(); }

std::shared_ptr<ObjectStore> retrying(std::shared_ptr<ObjectStore> inner) {
  // Short waits and many attempts: the contract is about answers, not about how long they take.
  RetryPolicy policy;
  policy.attempts_max = 40;
  policy.backoff_base = std::chrono::microseconds(10);
  policy.backoff_max = std::chrono::microseconds(100);
  policy.pause_base = std::chrono::microseconds(50);
  policy.pause_max = std::chrono::microseconds(500);
  policy.tokens_max = 1'000'000;
  return std::make_shared<RetryingObjectStore>(
      std::move(inner),
      std::make_shared<RetryControl>(policy, system_clock(), system_random(), metrics()), timers());
}

// Faults of all kinds that retries cure. Uploads are left alone: their back end retries them. A
// lost answer to the compare-and-swap of ARaceToReplaceLosesNoUpdate ("n") cannot be told from a
// defeat once another writer has replaced it, as retry_write_token.h says.
std::shared_ptr<ObjectStore> faulty() {
  const FaultPlan random = random_faults(
      1, {{.probability = 0.10, .fault = {.kind = Fault::Kind::kFailBefore}},
          {.probability = 0.10, .fault = {.kind = Fault::Kind::kFailAfter}},
          {.probability = 0.02, .fault = {.kind = Fault::Kind::kThrottle}},
          {.probability = 0.05,
           .fault = {.kind = Fault::Kind::kFailBefore, .code = StatusCode::kCorruption}}});
  const FaultPlan plan = [random](const FaultableCall& call) -> std::optional<Fault> {
    if (call.operation == StoreOperation::kUploadWrite ||
        call.operation == StoreOperation::kUploadFinish ||
        call.operation == StoreOperation::kUploadAbort) {
      return {};
    }
    auto fault = random(call);
    if (fault && call.operation == StoreOperation::kPut && call.key.ends_with("/n")) {
      fault->kind = Fault::Kind::kFailBefore;
    }
    return fault;
  };
  return std::make_shared<FaultyObjectStore>(memory(), plan, system_clock(), timers());
}

std::shared_ptr<ObjectStore> slow_memory() {
  return std::make_shared<MemoryObjectStore>(
      system_clock(), timers(), MemoryObjectStoreOptions{.latency = std::chrono::microseconds(20)});
}

}  // namespace

INSTANTIATE_TEST_SUITE_P(
    Wrappers, ObjectStoreContract,
    ::testing::Values(
        ContractTarget{"memory_with_latency", slow_memory, kSmallParts},
        ContractTarget{"metered",
                       [] {
                         return std::make_shared<MeteredObjectStore>(memory(), metrics(),
                                                                     system_clock());
                       },
                       kSmallParts},
        ContractTarget{"recording", [] { return std::make_shared<RecordingObjectStore>(memory()); },
                       kSmallParts},
        ContractTarget{"faulty_without_faults",
                       [] {
                         return std::make_shared<FaultyObjectStore>(memory(), no_faults(),
                                                                    system_clock(), timers());
                       },
                       kSmallParts},
        ContractTarget{"prefixed",
                       [] { return std::make_shared<PrefixedObjectStore>(memory(), "p/q"); },
                       {.key_bytes_max = kKeyBytesMax - 4, .part_bytes = 64 * kKiB}},
        ContractTarget{"retrying", [] { return retrying(memory()); }, kSmallParts},
        ContractTarget{"retrying_over_faulty", [] { return retrying(faulty()); }, kSmallParts}),
    contract_target_name);

}  // namespace millrace
