#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "base/clock.h"
#include "base/executor.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "vfs/tree.h"

namespace millrace {

// Files that lie whole on this machine's disk, so that what is read of them goes from the page
// cache to the socket without passing through us.
//
// Holding one costs a descriptor, and its bytes count in the cache although it may be evicted; so
// there are few, and none longer than it is used.
//
// All methods are safe from any thread; what it is made with outlives it.
class NfsWholeFiles {
 public:
  NfsWholeFiles(Clock& clock, Executor& work) : clock_(clock), work_(work) {}
  // Waits for what is being looked at.
  ~NfsWholeFiles();

  // Null when it is not known to be whole. Never blocks.
  std::shared_ptr<const CompleteObject> find(NodeNumber node) MR_EXCLUDES(mutex_);
  // Looks, on the work executor, whether the file is whole by now. Many may ask, one looks.
  void look(NodeNumber node, std::shared_ptr<OpenFile> file, const RequestContext& context)
      MR_EXCLUDES(mutex_);
  // Lets go of those that were not read lately.
  void sweep() MR_EXCLUDES(mutex_);
  std::size_t size() const MR_EXCLUDES(mutex_);

 private:
  static constexpr std::size_t kFilesMax = 1024;
  static constexpr Duration kUnusedMax = std::chrono::minutes(1);
  // How long a file that was not whole is not looked at again.
  static constexpr Duration kLookInterval = std::chrono::seconds(5);

  struct Known {
    std::shared_ptr<const CompleteObject> file;  // Null: it was not whole, or is being looked at.
    TimePoint used;
  };
  bool begin_look(NodeNumber node) MR_EXCLUDES(mutex_);
  void end_look(NodeNumber node, std::shared_ptr<const CompleteObject> file) MR_EXCLUDES(mutex_);

  Clock& clock_;
  Executor& work_;
  mutable Mutex mutex_;
  std::unordered_map<NodeNumber, Known> known_ MR_GUARDED_BY(mutex_);
  Gate looks_;
};

}  // namespace millrace
