#pragma once

#include <array>
#include <list>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/request_context.h"
#include "vfs/node_number.h"
#include "vfs/tree.h"

namespace millrace {

// Files that were read lately, so that requests which name only a node need not open it each time.
// What is forgotten is opened again.
//
// All methods are safe from any thread. The tree outlives it.
class RecentFiles {
 public:
  explicit RecentFiles(Tree& tree) : tree_(tree) {}

  // Blocks when the file has to be opened.
  Result<std::shared_ptr<OpenFile>> file(const RequestContext& context, NodeNumber node);
  // Forgets the files of a version.
  void forget(TreeNumber tree);
  // Null when it is not known: never blocks.
  std::shared_ptr<OpenFile> known(NodeNumber node);

 private:
  struct Shard {
    Mutex mutex;
    std::list<std::pair<NodeNumber, std::shared_ptr<OpenFile>>> used MR_GUARDED_BY(mutex);
    std::unordered_map<std::uint64_t, decltype(used)::iterator> places MR_GUARDED_BY(mutex);
  };
  static constexpr std::size_t kShards = 16;
  static constexpr std::size_t kFilesPerShardMax = 512;

  Tree& tree_;
  std::array<Shard, kShards> shards_;
};

}  // namespace millrace
