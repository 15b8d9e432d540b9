#include "vfs/recent_files.h"

namespace millrace {

void RecentFiles::forget(TreeNumber tree) {
  for (Shard& shard : shards_) {
    MutexLock lock(shard.mutex);
    for (auto it = shard.used.begin(); it != shard.used.end();) {
      const bool goes = place_of(it->first) == NodePlace::kVersion && tree_of(it->first) == tree;
      if (goes) shard.places.erase(it->first.value());
      it = goes ? shard.used.erase(it) : std::next(it);
    }
  }
}

std::shared_ptr<OpenFile> RecentFiles::known(NodeNumber node) {
  Shard& shard = shards_[node.value() % kShards];
  MutexLock lock(shard.mutex);
  const auto found = shard.places.find(node.value());
  if (found == shard.places.end()) return nullptr;
  shard.used.splice(shard.used.begin(), shard.used, found->second);
  return found->second->second;
}

Result<std::shared_ptr<OpenFile>> RecentFiles::file(const RequestContext& context,
                                                    NodeNumber node) {
  if (std::shared_ptr<OpenFile> file = known(node)) return file;
  MR_ASSIGN_OR_RETURN(std::shared_ptr<OpenFile> file, tree_.open(context, node));
  Shard& shard = shards_[node.value() % kShards];
  MutexLock lock(shard.mutex);
  const auto found = shard.places.find(node.value());
  if (found != shard.places.end()) return found->second->second;
  shard.used.emplace_front(node, file);
  shard.places.emplace(node.value(), shard.used.begin());
  if (shard.used.size() > kFilesPerShardMax) {
    shard.places.erase(shard.used.back().first.value());
    shard.used.pop_back();
  }
  return file;
}

}  // namespace millrace
