#pragma once

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "dataset/registry.h"
#include "vfs/tree.h"
#include "vfs/version_trees.h"

namespace millrace {

// /datasets: a directory for each component of a dataset's name; below the last one a directory for
// each version that can be read, and a symlink for each alias. What it shows is at most
// kAnswerLifetime old, or as old as the last answer of a store that cannot be reached. After a
// restart there is no such answer: then versions that this machine has served are found by their
// names, and there are no lists.
//
// Nodes are named by their path (vfs/node_number.h); versions are VersionTrees' own.
class DatasetsTree final : public Tree {
 public:
  DatasetsTree(const Registry& registry, VersionTrees& versions, Clock& clock,
               RecentRefresh refresh = {});

  Result<NodeAttributes> attributes(const RequestContext& context, NodeNumber node) override;
  Result<NodeAttributes> lookup(const RequestContext& context, NodeNumber directory,
                                std::string_view name) override;
  Result<NodeNumber> parent(const RequestContext& context, NodeNumber node) override;
  // A cookie is a hash of the entry's path, and entries are shown in the order of these: it stays a
  // place in a list whose names come and go.
  Status read_directory(const RequestContext& context, NodeNumber directory, std::uint64_t cookie,
                        const Visitor& visitor) override;
  Result<std::string> read_link(const RequestContext& context, NodeNumber symlink) override;
  // Always kInvalidArgument: files are in versions.
  Result<std::shared_ptr<OpenFile>> open(const RequestContext& context, NodeNumber file) override;
  Result<std::vector<NodeFact>> facts(const RequestContext& context, NodeNumber node) override;
  Result<TreeUsage> usage(const RequestContext& context, NodeNumber node) override;

  // Something was changed in the registry: it is asked again at the next occasion.
  void ask_again();

  // Looks through the registry for a version to which another gateway may have given this number.
  // kNotFound when there is none, or when the number is another's here.
  Status find_version(const RequestContext& context, TreeNumber number, std::uint32_t check);

  // Where a version hangs, for whoever exports it alone. An alias is followed. While the store does
  // not answer, a version that this machine has served is found all the same.
  Result<std::shared_ptr<VersionTree>> version(const RequestContext& context,
                                               const VersionRef& ref);

 private:
  struct Directory {
    std::string path;  // "" is /datasets itself.
  };
  struct Alias {
    std::string path;
    std::string target;
  };
  using Node = std::variant<Directory, Alias>;
  struct Child {
    std::string name;
    std::variant<Node, VersionEntry> what;
  };
  struct Names {
    std::vector<VersionEntry> versions;
    std::vector<AliasEntry> aliases;
  };

  Result<std::vector<DatasetName>> datasets(const RequestContext& context,
                                            RecentWait wait = RecentWait::kForAnswer);
  Result<Names> names(const RequestContext& context, const DatasetName& dataset,
                      RecentWait wait = RecentWait::kForAnswer);
  // The dataset that a path names; nothing when it is only a beginning of names.
  Result<std::optional<DatasetName>> dataset_at(const RequestContext& context,
                                                const std::string& path,
                                                RecentWait wait = RecentWait::kForAnswer);
  // What stands below a directory that is no dataset.
  Result<std::vector<std::string>> components(const RequestContext& context,
                                              const std::string& path,
                                              RecentWait wait = RecentWait::kForAnswer);
  // Of a directory, by their cookies.
  Result<std::map<std::uint64_t, Child>> children(const RequestContext& context,
                                                  const std::string& path);
  // Without its name and its cookie. Waits for no manifest: of a version that nobody has opened
  // only the number is known. kNotFound when it is gone since.
  Result<NodeEntry> listed(const RequestContext& context, const Child& child);
  // By what the registry says.
  Result<NodeAttributes> lookup_listed(const RequestContext& context, const std::string& path,
                                       std::string_view name, RecentWait wait);

  // The node of a number: known, above what was served here, or found among all paths of the
  // registry.
  Result<Node> node(const RequestContext& context, NodeNumber number);
  Status find_all_nodes(const RequestContext& context);
  // The directories above what this machine has served.
  Status add_served_directories();
  Result<NodeAttributes> add(Node node);
  NodeAttributes attributes_of(const Node& node) const;
  Result<NodeAttributes> version_root(const RequestContext& context, const VersionEntry& entry);
  Result<std::string> directory_path(const RequestContext& context, NodeNumber directory);

  const Registry& registry_;
  VersionTrees& versions_;
  const WallTime started_;
  const Duration patience_;
  Recent<std::vector<DatasetName>> datasets_;
  Recent<Names> names_;

  Mutex mutex_;
  std::map<NodeNumber, Node> nodes_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
