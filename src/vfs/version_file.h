#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "dataset/manifest.h"
#include "vfs/file_accounts.h"
#include "vfs/tree.h"
#include "vfs/version_tree.h"

namespace millrace {

// A file of a version that somebody has open. When its objects are gone because they were packed
// anew, it goes on with the newest layout.
class VersionFile final : public OpenFile, public std::enable_shared_from_this<VersionFile> {
 public:
  // `opener` is whom reads count for, most likely; null when nothing will be read.
  VersionFile(std::shared_ptr<VersionTree> tree, ManifestEntry entry,
              std::shared_ptr<const Caller> opener);

  std::uint64_t size() const override { return entry_.size(); }
  NodeAttributes attributes() const override { return tree_->attributes_of(entry_); }
  void read(const RequestContext& context, ByteRange range, Completion<Slice> done) override;
  Result<std::unique_ptr<CompleteObject>> complete(const RequestContext& context) override;
  void count_handed_out(const RequestContext& context) override;

  // "yes", "part" or "no".
  Result<std::string> cached(const RequestContext& context);

 private:
  using Objects = std::shared_ptr<const VersionObjects>;

  // One read: shared by its steps, so that they do not copy what many reads share.
  struct Request {
    RequestContext context;
    ByteRange range;
    std::shared_ptr<ReadAccount> account;  // Null when nobody counts.
  };
  using RequestPtr = std::shared_ptr<const Request>;

  // Where the file lies in a layout, by that layout's own entry.
  Result<std::vector<FilePart>> parts_in(const VersionObjects& objects) const;
  void read_from(const Objects& objects, const RequestPtr& request, Completion<Slice> done,
                 bool may_renew);
  // What was sent makes us expect others.
  void note_read(const Objects& objects, const RequestPtr& request, const FilePart& part);
  // A read has failed: once more with a newer layout, if there is one and that may be why.
  void failed(const Objects& objects, const RequestPtr& request, Completion<Slice> done, Status why,
              bool may_renew);
  // Once, for all reads: who reads on in spite of the failures must not fill the log.
  void report(const VersionObjects& objects, ByteRange range, const Status& why);

  const std::shared_ptr<VersionTree> tree_;
  const ManifestEntry entry_;
  const FileAccounts accounts_;
  std::atomic<bool> reported_ = false;
};

}  // namespace millrace
