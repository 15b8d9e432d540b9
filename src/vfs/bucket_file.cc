#include "vfs/bucket_file.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "vfs/pinned_object.h"

namespace millrace {

BucketFile::BucketFile(BlockCache& cache, ObjectVersion object, const NodeAttributes& attributes,
                       std::shared_ptr<BucketView> view, std::string directory, std::string name,
                       FileAccounts accounts)
    : cache_(cache),
      object_(std::move(object)),
      attributes_(attributes),
      view_(std::move(view)),
      directory_(std::move(directory)),
      name_(std::move(name)),
      accounts_(std::move(accounts)) {}

void BucketFile::read(const RequestContext& context, ByteRange range, Completion<Slice> done) {
  if (range.offset >= size()) {
    done.complete(Slice());
    return;
  }
  range.length = std::min(range.length, size() - range.offset);
  const std::shared_ptr<ReadAccount> account = accounts_.of(context);
  cache_.read(
      account ? context.with_account(account) : context, object_, range,
      Completion<Slice>(inline_executor(), [self = shared_from_this(), account,
                                            done = std::move(done)](Result<Slice> data) mutable {
        if (!data) {
          data = failure(self->explain(data.error()));
        } else if (account) {
          account->add_read(data->size());
        }
        done.complete(std::move(data));
      }));
}

Status BucketFile::explain(const Status& why) {
  if (!is_gone(why)) return why;
  if (!reported_.exchange(true)) {
    view_->forget(directory_, name_);
    log_warn("an object was changed or deleted while a file was open",
             {{"store", object_.store().value()},
              {"key", object_.key().value()},
              {"error", why.to_string()}});
  }
  return gone(why);
}

Result<std::unique_ptr<CompleteObject>> BucketFile::complete(const RequestContext& context) {
  if (size() == 0) return failure(StatusCode::kNotFound, "an empty file has nothing to cache");
  return cache_.open_complete(context, object_);
}

void BucketFile::count_handed_out(const RequestContext& context) {
  if (const auto account = accounts_.of(context)) account->add_handed_out(size());
}

Result<std::string> BucketFile::cached(const RequestContext& context) {
  if (size() == 0) return cached_word(0, 0);
  MR_ASSIGN_OR_RETURN(const std::uint64_t bytes,
                      cache_.cached_bytes(context, object_, {0, size()}));
  return cached_word(bytes, size());
}

}  // namespace millrace
