#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "frontends/fuse/fuse_device.h"
#include "frontends/fuse/open_table.h"
#include "vfs/recent_files.h"

namespace millrace {

// What the kernel is told about a file that it opens.
struct FuseOpened {
  std::uint64_t handle = 0;
  std::int32_t backing = 0;  // Not 0: the kernel reads the file by itself.
};

// The files of a mount that are open or were read lately.
//
// Reads name the node, not the handle: the tree's numbers say all, so small files need no record of
// who has them open. Files that may be complete on disk do: the kernel takes only one mode, and one
// backing, for a file at a time. Such a file keeps the mode of its first opener until the last one
// is gone.
//
// All methods are safe from any thread. What it is made with outlives it.
class FuseFiles {
 public:
  // With `passthrough`, complete files are handed to the kernel.
  FuseFiles(Tree& tree, const FuseDevice& device, OpenTable table, bool passthrough);
  ~FuseFiles();

  Result<FuseOpened> open(const RequestContext& context, NodeNumber node, std::uint64_t unique)
      MR_EXCLUDES(mutex_);
  void release(std::uint64_t handle) MR_EXCLUDES(mutex_);
  // For reading.
  Result<std::shared_ptr<OpenFile>> file(const RequestContext& context, NodeNumber node) {
    return files_.file(context, node);
  }

  // After a take-over, before the first request: what the daemon before us left open is ours.
  void resume() MR_EXCLUDES(mutex_);
  // The kernel holds the files that were handed to it by itself. After this we hold them too, so
  // that the cache counts their bytes. Reads whole files, since nothing is trusted after a start,
  // and waits while the cache checks them; until all are held, closed or evicted, or it is called
  // off.
  void hold_again(const RequestContext& context) MR_EXCLUDES(mutex_);

  // Of the table of open files, for whoever keeps it.
  int opens_descriptor() MR_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    return table_.descriptor();
  }
  std::uint64_t passthrough_opens() const { return passthrough_opens_; }
  // Files that the kernel reads by itself now.
  std::size_t backings() MR_EXCLUDES(mutex_) { return handed_over().size(); }

 private:
  // A file that somebody has open and that may be, or become, complete.
  struct Tracked {
    std::uint64_t opens = 0;
    std::int32_t backing = 0;
    std::unique_ptr<CompleteObject> whole;  // Of the backing: keeps the cache from counting it out.
  };
  // Ids that a killed daemon may have got from the kernel without having noted them.
  static constexpr std::int32_t kLostBackingsMax = 64;

  Result<FuseOpened> add(const RequestContext& context, OpenFile& file, NodeNumber node,
                         std::uint64_t unique) MR_REQUIRES(mutex_);
  void hand_over(Tracked& tracked, std::unique_ptr<CompleteObject> whole) MR_REQUIRES(mutex_);
  // Holds a file that the kernel reads. True when its cache must check it first.
  bool is_checked_later(const RequestContext& context, NodeNumber node) MR_EXCLUDES(mutex_);
  void close(NodeNumber node, Tracked& tracked) MR_REQUIRES(mutex_);
  void close_lost_backings() MR_REQUIRES(mutex_);
  std::vector<NodeNumber> handed_over() MR_EXCLUDES(mutex_);

  RecentFiles files_;
  const FuseDevice& device_;
  std::atomic<bool> passthrough_;
  std::atomic<std::uint64_t> passthrough_opens_ = 0;

  Mutex mutex_;
  OpenTable table_ MR_GUARDED_BY(mutex_);
  std::unordered_map<std::uint64_t, Tracked> tracked_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
