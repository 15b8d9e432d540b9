#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/executor.h"
#include "bucket/bucket_view.h"
#include "cache/block_cache.h"
#include "vfs/bucket_file.h"
#include "vfs/node_paths.h"
#include "vfs/tree.h"

namespace millrace {

// A store, or a prefix of one, that is shown as it is.
struct BucketExport {
  std::string name;  // Below /buckets.
  std::shared_ptr<ObjectStore> store;
  StoreId id;
};

// /buckets: a directory for each export, and in it the objects of its store as files. What it shows
// is at most kShortLifetime old, or as old as the last answer of a store that cannot be reached. A
// file is pinned at its open (BucketFile).
//
// Nodes are named by their path, and files by what they hold too: "train/a/" is a directory, and
// "train/a\0etag" a file. So a name that becomes another kind, or another object, becomes another
// node, and whoever keeps pages of a node never mixes two objects. A node that was forgotten
// (NodePaths), or whose object was replaced, is kNotFound.
class BucketsTree final : public Tree {
 public:
  struct Parts {
    NodePaths& paths;
    BlockCache& cache;  // Learns of the stores.
    Clock& clock;
    Executor& requests;  // As BucketView has it.
    // Is told of every read; may be null.
    ReadObserver* observer = nullptr;
  };
  // Names are those of files, and differ. What the options say is kept is shared by all exports.
  // What the parts refer to outlives the tree and its files.
  BucketsTree(const Parts& parts, const std::vector<BucketExport>& exports,
              BucketViewOptions options = {.lifetime = kAnswerLifetime});

  Result<NodeAttributes> attributes(const RequestContext& context, NodeNumber node) override;
  Result<NodeAttributes> lookup(const RequestContext& context, NodeNumber directory,
                                std::string_view name) override;
  Result<NodeNumber> parent(const RequestContext& context, NodeNumber node) override;
  // A cookie is the hash of the last child shown, which stays a place in the order of names when
  // that child is gone; buckets come in the order of their hashes. Memory is bounded by pages,
  // whatever the directory has.
  Status read_directory(const RequestContext& context, NodeNumber directory, std::uint64_t cookie,
                        const Visitor& visitor) override;
  // Always kInvalidArgument: objects are no symlinks.
  Result<std::string> read_link(const RequestContext& context, NodeNumber symlink) override;
  Result<std::shared_ptr<OpenFile>> open(const RequestContext& context, NodeNumber file) override;
  // "store", "key"; of a file "etag", and "cached": "yes", "no" or "part".
  Result<std::vector<NodeFact>> facts(const RequestContext& context, NodeNumber node) override;
  Result<TreeUsage> usage(const RequestContext& context, NodeNumber node) override;

  // Keys that cannot be shown, each time that they were met.
  std::uint64_t hidden_keys() const;

 private:
  struct Bucket {
    std::string path;  // "/buckets/train".
    StoreId id;
    std::shared_ptr<BucketView> view;
  };
  // Where a node is.
  struct Place {
    std::string path;           // "" is /buckets itself; that of a directory ends in '/'.
    const Bucket* bucket;       // Null above the buckets.
    std::string key;            // The part of the path behind the bucket's name.
    std::string identity = {};  // Of a file: the object's.

    bool is_directory() const { return path.empty() || path.ends_with('/'); }
    bool is_bucket() const { return bucket != nullptr && key.empty(); }
    // Of a node inside a bucket.
    std::string directory() const;
    std::string name() const;
  };

  Result<Place> place(NodeNumber node);
  Result<Place> directory_place(NodeNumber node);
  // The entry of a node inside a bucket, which still is of its kind: kNotFound otherwise.
  Result<BucketEntry> entry(const RequestContext& context, const Place& place);
  // `opener` is null when nothing will be read.
  std::shared_ptr<BucketFile> file(NodeNumber number, const Place& place, const BucketEntry& entry,
                                   std::shared_ptr<const Caller> opener) const;
  NodeAttributes directory_attributes(NodeNumber number) const;
  // Of a child, whose number is remembered from now on.
  Result<NodeAttributes> add(const Place& directory, const BucketEntry& entry);
  // Before numbers go to a client. A disk that is full hides no names: that is logged, once until
  // it has room again.
  void keep_numbers();
  Status show_buckets(std::uint64_t cookie, const Visitor& visitor);
  Status show_entries(const RequestContext& context, const Place& directory, std::string after,
                      const Visitor& visitor);
  Result<std::string> text_of_cookie(const Place& directory, std::uint64_t cookie);

  const Parts parts_;
  const WallTime started_;
  std::map<std::string, Bucket, std::less<>> buckets_;
  std::atomic<bool> loses_numbers_ = false;
};

}  // namespace millrace
