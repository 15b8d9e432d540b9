#pragma once

#include <array>
#include <vector>

#include "vfs/file_system.h"
#include "vfs/node_number.h"

namespace millrace {

// The directory that has the kinds of trees.
class FileSystem::Root final : public Tree {
 public:
  Root(Tree& datasets, Tree* buckets, WallTime started);

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

 private:
  struct Child {
    std::string_view name;
    NodeNumber number;
    Tree* tree;
    // The same whatever else there is: a listing may be taken up after a restart with other
    // settings.
    std::uint64_t cookie;
  };

  const WallTime started_;
  std::vector<Child> children_;  // In the order of their cookies.
};

}  // namespace millrace
