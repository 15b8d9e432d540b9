#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

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
  void add(NodeNumber node, std::shared_ptr<OpenFile> file) MR_EXCLUDES(mutex_);
  // One of its openers is gone.
  void remove(NodeNumber node) MR_EXCLUDES(mutex_);
  // Null for what is not kept.
  std::shared_ptr<OpenFile> file(NodeNumber node) MR_EXCLUDES(mutex_);
  std::size_t size() const MR_EXCLUDES(mutex_);

 private:
  struct Pin {
    std::shared_ptr<OpenFile> file;
    std::uint64_t opens = 0;
  };
  static bool is_kept(NodeNumber node) { return place_of(node) == NodePlace::kBuckets; }

  mutable Mutex mutex_;
  std::unordered_map<std::uint64_t, Pin> pins_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
