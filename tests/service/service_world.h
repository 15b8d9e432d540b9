#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "service/preload_plan.h"
#include "service/preloads.h"
#include "service/usage.h"
#include "tests/vfs/vfs_world.h"

namespace millrace {

// A gateway's tree with what it does besides: counting reads, and preloads. All of it can be
// restarted on the same disk.
class ServiceWorld : public VfsWorld {
 public:
  explicit ServiceWorld(std::uint64_t cache_limit_bytes = kGiB, UsageOptions usage_options = {},
                        std::vector<BucketExport> exports = {})
      : VfsWorld({}, std::move(exports)), usage_options_(usage_options) {
    cache_bytes = cache_limit_bytes;
    restart();
  }
  ~ServiceWorld() { stop_all(); }

  void restart() {
    stop_all();
    usage_ = Usage::open(
                 {.disk = disk(), .clock = system_clock(), .work = work(), .path = "/state/usage"},
                 usage_options_)
                 .value();
    observer = usage_.get();
    start();
    preloads_ = Preloads::open({.datasets = datasets(),
                                .cache = cache(),
                                .disk = disk(),
                                .clock = *cache_clock,
                                .random = random,
                                .directory = "/state/preloads",
                                .observer = observer},
                               preload_options)
                    .value();
  }
  PreloadOptions preload_options = {.pause_min = std::chrono::milliseconds(1)};
  void stop_all() {
    preloads_.reset();
    stop();
    usage_.reset();
  }

  Usage& usage() { return *usage_; }
  Preloads& preloads() { return *preloads_; }

  // Until it has ended, or for a minute.
  PreloadInfo ended(const PreloadId& id) {
    Waiter<PreloadInfo> waiter;
    preloads().wait(context.with_deadline(system_clock().now() + std::chrono::minutes(1)), id,
                    waiter.completion());
    const Result<PreloadInfo> info = waiter.wait();
    EXPECT_TRUE(info && has_ended(info->state)) << (info ? info->problem : info.error().message());
    return info.value();
  }

  // Of all objects of a version.
  std::uint64_t cached_bytes(const std::string& ref) {
    const auto version = datasets().version(context, VersionRef::parse(ref).value()).value();
    const auto plan = PreloadPlan::make(context, system_clock(), version->objects(), {}).value();
    std::uint64_t bytes = 0;
    EXPECT_TRUE(plan.visit([&](const ObjectVersion& object, ByteRange range) -> Status {
                      bytes += cache().cached_bytes(context, object, range).value();
                      return {};
                    })
                    .ok());
    return bytes;
  }

  // Bytes of objects, as opposed to records and manifests, that the store cannot give.
  void break_objects(Fault::Kind kind, const std::string& below = "") {
    faulty->set_plan([this, kind, below](const FaultableCall& call) -> std::optional<Fault> {
      if (call.operation != StoreOperation::kGetRange || call.key.starts_with(".millrace") ||
          !call.key.starts_with(below)) {
        return std::nullopt;
      }
      ++broken_gets;
      return Fault{.kind = kind};
    });
  }
  std::atomic<std::uint64_t> broken_gets = 0;
  void mend() { faulty->set_plan(no_faults()); }

  // How often, and how much, objects were asked for.
  struct Gets {
    std::uint64_t requests = 0;
    std::uint64_t bytes = 0;
  };
  Gets object_gets() const {
    Gets gets;
    for (const RecordedRequest& request : recording->requests()) {
      if (request.operation != StoreOperation::kGetRange || request.key.starts_with(".millrace")) {
        continue;
      }
      ++gets.requests;
      gets.bytes += request.range ? request.range->length : 0;
    }
    return gets;
  }

 private:
  const UsageOptions usage_options_;
  std::unique_ptr<Usage> usage_;
  std::unique_ptr<Preloads> preloads_;
};

}  // namespace millrace
