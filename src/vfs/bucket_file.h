#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "bucket/bucket_view.h"
#include "cache/block_cache.h"
#include "vfs/file_accounts.h"
#include "vfs/tree.h"

namespace millrace {

// An object of a bucket that somebody has open: the one that it was at the open, whatever the key
// holds later. What is cached of it reads on when the store has another.
class BucketFile final : public OpenFile, public std::enable_shared_from_this<BucketFile> {
 public:
  // `directory` and `name` are where the view has it. The cache outlives the file.
  BucketFile(BlockCache& cache, ObjectVersion object, const NodeAttributes& attributes,
             std::shared_ptr<BucketView> view, std::string directory, std::string name,
             FileAccounts accounts);

  std::uint64_t size() const override { return object_.size(); }
  NodeAttributes attributes() const override { return attributes_; }
  void read(const RequestContext& context, ByteRange range, Completion<Slice> done) override;
  Result<std::unique_ptr<CompleteObject>> complete(const RequestContext& context) override;
  void count_handed_out(const RequestContext& context) override;

  // "yes", "part" or "no".
  Result<std::string> cached(const RequestContext& context);

 private:
  // What a failed read is answered with. A change is reported once, and makes the view ask again.
  Status explain(const Status& why);

  BlockCache& cache_;
  const ObjectVersion object_;
  const NodeAttributes attributes_;
  const std::shared_ptr<BucketView> view_;
  const std::string directory_;
  const std::string name_;
  const FileAccounts accounts_;
  std::atomic<bool> reported_ = false;
};

}  // namespace millrace
