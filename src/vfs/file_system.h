#pragma once

#include <memory>
#include <string>

#include "vfs/datasets_tree.h"
#include "vfs/tree.h"
#include "vfs/version_trees.h"

namespace millrace {

struct FileSystemPolicy {
  // Only versions are served: /buckets is not there.
  bool require_version = false;
};

// All that is served, under one root: /datasets, and /buckets where there is one. Every front end
// shows this tree or a part of it, and knows the kinds of trees in it only by their nodes.
//
// As Tree says. What it is made with outlives it.
class FileSystem final : public Tree {
 public:
  // `buckets` may be null.
  FileSystem(DatasetsTree& datasets, VersionTrees& versions, Tree* buckets,
             FileSystemPolicy policy);

  Result<NodeAttributes> attributes(const RequestContext& context, NodeNumber node) override;
  Result<NodeAttributes> lookup(const RequestContext& context, NodeNumber directory,
                                std::string_view name) override;
  Result<NodeNumber> parent(const RequestContext& context, NodeNumber node) override;
  Status read_directory(const RequestContext& context, NodeNumber directory, std::uint64_t cookie,
                        const Visitor& visitor) override;
  Result<std::string> read_link(const RequestContext& context, NodeNumber symlink) override;
  Result<std::shared_ptr<OpenFile>> open(const RequestContext& context, NodeNumber file) override;
  Result<std::vector<NodeFact>> facts(const RequestContext& context, NodeNumber node) override;
  Result<TreeUsage> usage(const RequestContext& context, NodeNumber node) override;

  // What tells the version of a node from others of its number, for those who keep the node for
  // longer than this machine: 0 outside of versions, nothing for versions that are not known here.
  // Does not block.
  std::optional<std::uint32_t> tree_check(NodeNumber node) const;
  // Makes the version of a node known here that another gateway has told of. kNotFound when there
  // is none of this check.
  Status find_tree(const RequestContext& context, NodeNumber node, std::uint32_t check);

  // VersionTrees::drop_if_purged().
  Result<bool> drop_if_purged(const RequestContext& context, TreeNumber tree) {
    return versions_.drop_if_purged(context, tree);
  }

  // The node at a path from the root, following no symlinks: "/datasets/imagenet/v1".
  Result<NodeAttributes> resolve(const RequestContext& context, std::string_view path);

 private:
  // The root's own nodes, which no tree has.
  class Root;

  // Who knows the node. Kept while it is used: a version may be closed by others meanwhile.
  Result<std::shared_ptr<Tree>> tree(const RequestContext& context, NodeNumber node);

  DatasetsTree& datasets_;
  VersionTrees& versions_;
  Tree* const buckets_;
  const std::shared_ptr<Tree> root_;
};

}  // namespace millrace
