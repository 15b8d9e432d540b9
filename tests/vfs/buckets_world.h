#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/vfs/vfs_world.h"

namespace millrace {

// What is shown below /buckets: a store in memory that remembers requests and can fail.
struct BucketStores {
  const std::shared_ptr<MemoryObjectStore> objects = std::make_shared<MemoryObjectStore>();
  const std::shared_ptr<RecordingObjectStore> asked =
      std::make_shared<RecordingObjectStore>(objects);
  ThreadPool delays{{.name = "delays", .threads = 1, .queued_tasks_max = 1024}};
  const std::shared_ptr<FaultyObjectStore> broken =
      std::make_shared<FaultyObjectStore>(asked, no_faults(), system_clock(), delays);
};

// A gateway with one bucket, /buckets/train.
class BucketsWorld : public BucketStores, public VfsWorld {
 public:
  explicit BucketsWorld(BucketViewOptions views = {.lifetime = kAnswerLifetime},
                        FileSystemPolicy policy = {})
      : VfsWorld(policy, {{.name = "train", .store = broken, .id = StoreId("memory://train")}},
                 views) {}

  ObjectInfo put(const std::string& key, std::string_view content) {
    return objects->put(context, ObjectKey(key), Slice::copy_of(content), {}).value();
  }
  void remove(const std::string& key) {
    ASSERT_TRUE(objects->remove(context, std::vector{ObjectKey(key)}).ok());
  }
  void cut_off() {
    broken->set_plan(random_faults(1, {{1.0, {.kind = Fault::Kind::kFailBefore}}}));
  }
  void bring_back() { broken->set_plan(no_faults()); }
  void pass_lifetime() { clock().advance(kShortLifetime); }
  StatusCode failure_at(std::string_view path) {
    const auto found = files().resolve(context, path);
    return found ? StatusCode::kOk : found.error().code();
  }
  std::string fact(NodeNumber node, const std::string& name) {
    const std::vector<NodeFact> facts = files().facts(context, node).value();
    const auto found = std::ranges::find(facts, name, &NodeFact::name);
    return found == facts.end() ? "" : found->value;
  }
};

}  // namespace millrace
