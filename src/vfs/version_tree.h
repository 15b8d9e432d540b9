#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "dataset/manifest.h"
#include "dataset/version_ref.h"
#include "vfs/node_number.h"
#include "vfs/read_observer.h"
#include "vfs/tree.h"
#include "vfs/version_objects.h"

namespace millrace {

// What the files of versions are read with. The referred-to outlive all trees and their files.
struct VersionReads {
  BlockCache& cache;
  BufferPool& buffers;
  Executor& work;  // May block.
  // Opens the other stores that registered objects lie in.
  StoreResolver other_stores = refuse_other_stores;
  // Is told of every read; may be null.
  ReadObserver* observer = nullptr;
};

// A failure of the manifest, as the tree says it: a manifest that is not in the store is no name
// that leads nowhere, but kIoError.
Status about_manifest(const std::string& version, const Status& why);

// One version, as its manifest has it: the number of an entry is its index there.
//
// A layout may be replaced, by a collection that packs anew: then objects of the old one go, and
// its manifest. Who meets that asks for the newest layout, and goes on with it. Both have the same
// entries under the same numbers; where their bytes lie differs.
//
// kNotFound is said of names and numbers alone, for clients keep that for ever. A manifest that is
// gone from the store is kIoError.
class VersionTree final : public Tree, public std::enable_shared_from_this<VersionTree> {
 public:
  // Finds the manifest of the newest layout; may block.
  using Reopen = std::function<Result<std::shared_ptr<const Manifest>>(const RequestContext&)>;

  struct Identity {
    TreeNumber number;
    VersionRef ref;
    StoreId store;
    NodeNumber parent;  // The directory of its dataset.
    // What messages call it where it is not registered, and its `ref` is nobody's.
    std::string place = {};
  };
  VersionTree(Identity identity, std::shared_ptr<const Manifest> manifest, Reopen reopen,
              VersionReads reads);

  const VersionRef& ref() const { return identity_.ref; }
  std::string name() const { return identity_.place.empty() ? ref().text() : identity_.place; }
  const Identity& identity() const { return identity_; }
  NodeNumber root() const { return version_node(identity_.number, Manifest::root()); }

  Result<NodeAttributes> attributes(const RequestContext& context, NodeNumber node) override;
  Result<NodeAttributes> lookup(const RequestContext& context, NodeNumber directory,
                                std::string_view name) override;
  Result<NodeNumber> parent(const RequestContext& context, NodeNumber node) override;
  // The cookie of a child is its place among the children, from 1.
  Status read_directory(const RequestContext& context, NodeNumber directory, std::uint64_t cookie,
                        const Visitor& visitor) override;
  Result<std::string> read_link(const RequestContext& context, NodeNumber symlink) override;
  Result<std::shared_ptr<OpenFile>> open(const RequestContext& context, NodeNumber file) override;
  // "version", "digest" (of the content), and of a file "cached": "yes", "no" or "part".
  Result<std::vector<NodeFact>> facts(const RequestContext& context, NodeNumber node) override;

  Result<TreeUsage> usage(const RequestContext& context, NodeNumber node) override;

  // What the manifest says now about where the files lie.
  std::shared_ptr<const VersionObjects> objects() const MR_EXCLUDES(mutex_);
  // The newest layout, which is `stale` no longer; null when there is none but that. Blocks.
  Result<std::shared_ptr<const VersionObjects>> newer_than(
      const RequestContext& context, const std::shared_ptr<const VersionObjects>& stale)
      MR_EXCLUDES(mutex_);
  const VersionReads& reads() const { return reads_; }

  NodeAttributes attributes_of(const ManifestEntry& entry) const;

 private:
  // What `read` finds in the manifest about a node; with the newest layout where pages of ours are
  // gone. `read` may be called twice.
  template <class Read>
  auto ask(const RequestContext& context, NodeNumber node, Read read)
      -> decltype(read(std::declval<const Manifest&>()));
  std::shared_ptr<const VersionObjects> objects_of(std::shared_ptr<const Manifest> manifest) const;

  const Identity identity_;
  const Reopen reopen_;
  const VersionReads reads_;
  mutable Mutex mutex_;
  std::shared_ptr<const VersionObjects> objects_ MR_GUARDED_BY(mutex_);
};

}  // namespace millrace
