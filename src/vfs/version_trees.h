#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "base/mutex.h"
#include "dataset/manifest_store.h"
#include "dataset/registry.h"
#include "vfs/tree_numbers.h"
#include "vfs/version_tree.h"

namespace millrace {

// The versions that are served, each opened when somebody first comes to it.
//
// A version is found again by its number without the registry, so that what is cached can be read
// while the store is away. For the same reason it goes on with the layout that it had last here
// until something of that is gone. Safe from any thread; what it is made with outlives it.
class VersionTrees {
 public:
  struct Parts {
    const Registry& registry;
    ManifestStore& manifests;
    TreeNumbers& numbers;
    StoreId store;  // Of the registry.
    VersionReads reads;
  };
  explicit VersionTrees(Parts parts) : parts_(std::move(parts)) {}

  // A version that can be read, as the registry tells it.
  Result<std::shared_ptr<VersionTree>> of(const RequestContext& context, const VersionEntry& entry)
      MR_EXCLUDES(mutex_);
  // The number of such a version, for which nothing of it has to be had. kNotFound when it is
  // purged.
  Result<TreeNumber> number_of(const VersionEntry& entry) MR_EXCLUDES(mutex_);
  // Null when it is not open. Does not block.
  std::shared_ptr<VersionTree> opened(TreeNumber number) MR_EXCLUDES(mutex_);
  // Asks the registry whether a version is gone for good. From then on it is not found here either,
  // although it may be cached. False when it is not, and for what was never served here.
  Result<bool> drop_if_purged(const RequestContext& context, TreeNumber number) MR_EXCLUDES(mutex_);
  // kNotFound for a number that was never given out, and for what is gone.
  Result<std::shared_ptr<VersionTree>> find(const RequestContext& context, TreeNumber number)
      MR_EXCLUDES(mutex_);
  // What tells the tree from others of its number (tree_check_of); nothing for one that was never
  // given out here. Does not block.
  std::optional<std::uint32_t> check_of(TreeNumber number) const {
    return parts_.numbers.check_of(number);
  }
  // All that this machine has ever shown.
  std::vector<NumberedTree> known() const { return parts_.numbers.all(); }
  // One of them at a path of /datasets, or below it; as TreeNumbers has it.
  std::optional<NumberedTree> known_below(std::string_view path) const {
    return parts_.numbers.find_below(path);
  }

 private:
  // Opened trees that are kept; those in use stay anyway.
  static constexpr std::size_t kTreesMax = 256;

  Result<NumberedTree> numbered(const VersionEntry& entry);
  Status check_lives(const NumberedTree& tree) MR_EXCLUDES(mutex_);
  Result<std::shared_ptr<VersionTree>> open(const RequestContext& context, const NumberedTree& tree)
      MR_EXCLUDES(mutex_);
  Result<std::shared_ptr<const Manifest>> open_manifest(const VersionLayout& layout);
  // Of the layout that the tree had last; of the newest, where that is gone.
  Result<std::shared_ptr<const Manifest>> find_manifest(const RequestContext& context,
                                                        const NumberedTree& tree);
  // Null when it is that of the tree.
  Result<std::shared_ptr<const Manifest>> newest(const RequestContext& context,
                                                 const NumberedTree& tree);

  const Parts parts_;
  Mutex mutex_;
  std::map<std::uint32_t, std::shared_ptr<VersionTree>> trees_ MR_GUARDED_BY(mutex_);
  std::set<std::uint32_t> purged_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
