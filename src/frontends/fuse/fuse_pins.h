#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/mutex.h"
#include "vfs/node_number.h"
#include "vfs/tree.h"

namespace millrace {

// The files of buckets that the kernel has open. A live object may be replaced, and then cannot be
// opened again: what was opened is kept until its last close. Of a version any file can.
//
// What was opened before a restart is not known here. All methods are safe from any thread.
class FusePins {
 public:
  // Of the request that opens it. Returns the handle that tells of its end: `handle`, or one of its
  // own for a kept file that has none (0).
  std::uint64_t add(NodeNumber node, std::shared_ptr<OpenFile> file, std::uint64_t handle,
                    std::uint64_t unique) MR_EXCLUDES(mutex_);
  // One of its openers is gone. Nothing for one from before a restart.
  void remove(NodeNumber node, std::uint64_t handle) MR_EXCLUDES(mutex_);
  // Null for what is not kept.
  std::shared_ptr<OpenFile> file(NodeNumber node) MR_EXCLUDES(mutex_);
  std::size_t size() const MR_EXCLUDES(mutex_);

 private:
  struct Pin {
    std::shared_ptr<OpenFile> file;
    std::unordered_set<std::uint64_t> handles;
  };
  // Of handles that the table of open files (OpenTable) never gives.
  static constexpr std::uint64_t kOwnHandle = std::uint64_t{1} << 63;
  static bool is_kept(NodeNumber node) { return place_of(node) == NodePlace::kBuckets; }

  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, Pin> pins_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
