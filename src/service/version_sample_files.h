#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "loader/sample_source.h"
#include "vfs/version_tree.h"

namespace millrace {

// The files of a version as loaders read them: through the cache, counted as every read is, and on
// by a later layout where the version was packed anew. Safe from any thread.
class VersionSampleFiles final : public SampleFiles {
 public:
  explicit VersionSampleFiles(std::shared_ptr<VersionTree> tree)
      : tree_(std::move(tree)), manifest_(tree_->objects()->shared_manifest()) {}

  const Manifest& manifest() const override { return *manifest_; }
  Result<Slice> read(const RequestContext& context, EntryIndex file, ByteRange range) override;
  void start_read(const RequestContext& context, EntryIndex file, ByteRange range,
                  Completion<Slice> done) override;
  void expect(const RequestContext& context, EntryIndex file, ByteRange range) override;
  Status plan_read(EntryIndex file, ByteRange range, std::vector<PlannedRead>& reads) override;
  std::shared_ptr<FetchAccount> account(const Caller& caller) override;

 private:
  const std::shared_ptr<VersionTree> tree_;
  const std::shared_ptr<const Manifest> manifest_;
};

}  // namespace millrace
