#include "bucket/bucket_view.h"

#include <utility>

#include <fmt/format.h>

#include "base/completion.h"
#include "base/file_name.h"
#include "base/log.h"

namespace millrace {
namespace {

// Directories whose hidden keys are logged. A bucket full of them must not fill the log.
constexpr std::size_t kReportedMax = 1024;

// Pages of one directory follow each other in the order of their beginnings: no key has a NUL.
std::string page_name(const std::string& directory, std::string_view after) {
  std::string name = directory;
  name += '\0';
  name += after;
  return name;
}

bool cannot_be_there(const Status& status) {
  return status.code() == StatusCode::kNotFound || status.code() == StatusCode::kInvalidArgument;
}

}  // namespace

BucketView::BucketView(std::string path, std::shared_ptr<ObjectStore> store, Clock& clock,
                       Executor& requests, BucketViewOptions options)
    : path_(std::move(path)),
      store_(std::move(store)),
      requests_(requests),
      options_(options),
      pages_(clock, options.lifetime, options.pages_kept_max, options.refresh),
      names_(clock, options.lifetime, options.names_kept_max, options.refresh) {}

Result<std::optional<BucketEntry>> BucketView::find(const RequestContext& context,
                                                    const std::string& directory,
                                                    std::string_view name) {
  const std::string key = directory + std::string(name);
  if (file_name_fault(name) || !validate_key(ObjectKey(key)).ok()) return std::nullopt;
  if (auto fresh = known(directory, name, Age::kFresh)) return *std::move(fresh);
  return names_.get(
      context, key,
      [this, directory, name = std::string(name)](const RequestContext& asking) {
        return ask(asking, directory, name);
      },
      known(directory, name, Age::kAny));
}

std::optional<std::optional<BucketEntry>> BucketView::known(const std::string& directory,
                                                            std::string_view name, Age age) const {
  const std::optional<Page> page = pages_.at_or_before(page_name(directory, name), age);
  const std::string as_directory = std::string(name) + "/";
  if (!page || (*page)->directory != directory || !(*page)->covers(name) ||
      !(*page)->covers(as_directory)) {
    return std::nullopt;
  }
  const BucketEntry* entry = (*page)->find(as_directory);
  if (entry == nullptr) entry = (*page)->find(name);
  if (entry == nullptr) return std::optional<BucketEntry>();
  return *entry;
}

Result<std::optional<BucketEntry>> BucketView::ask(const RequestContext& context,
                                                   const std::string& directory,
                                                   std::string_view name) {
  const std::string key = directory + std::string(name);
  Waiter<bool> beside;
  const bool is_beside = requests_
                             .submit([&, done = beside.completion()]() mutable {
                               done.complete(has_keys_below(context, *store_, key));
                             })
                             .ok();
  const Result<ObjectInfo> object = store_->head(context, ObjectKey(key));
  const Result<bool> is_directory =
      is_beside ? beside.wait() : has_keys_below(context, *store_, key);
  MR_RETURN_IF_ERROR(judge(is_directory ? Status() : is_directory.error()));
  if (*is_directory) {
    if (object) hide(directory, key, "it is an object and also a directory of other objects");
    return BucketEntry{.text = std::string(name) + "/"};
  }
  if (object) return file_entry(name, *object);
  if (cannot_be_there(object.error())) return std::nullopt;
  return failure(object.error());
}

BucketView::Page BucketView::kept_page(const std::string& directory, const std::string& after,
                                       Age age) const {
  const std::optional<Page> page = pages_.at_or_before(page_name(directory, after), age);
  if (!page || (*page)->directory != directory) return nullptr;
  return (*page)->is_last || after < (*page)->through ? *page : nullptr;
}

Result<std::shared_ptr<const BucketPage>> BucketView::page(const RequestContext& context,
                                                           const std::string& directory,
                                                           const std::string& after) {
  if (Page fresh = kept_page(directory, after, Age::kFresh)) return fresh;
  const auto ask = [this, directory, after](const RequestContext& asking) -> Result<Page> {
    Result<BucketPage> page = read_bucket_page(
        asking, *store_, directory, after, options_.page_entries_max,
        [&](const std::string& key, const std::string& reason) { hide(directory, key, reason); });
    MR_RETURN_IF_ERROR(judge(page ? Status() : page.error()));
    return std::make_shared<const BucketPage>(*std::move(page));
  };
  const Page old = kept_page(directory, after, Age::kAny);
  return pages_.get(context, page_name(directory, after), ask,
                    old == nullptr ? std::nullopt : std::optional(old));
}

void BucketView::forget(const std::string& directory, std::string_view name) {
  names_.forget(directory + std::string(name));
  for (;;) {
    const std::optional<Page> page = pages_.at_or_before(page_name(directory, name), Age::kFresh);
    if (!page || (*page)->directory != directory) return;
    pages_.forget(page_name(directory, (*page)->after));
  }
}

void BucketView::hide(const std::string& directory, const std::string& key,
                      const std::string& reason) {
  hidden_keys_.fetch_add(1, std::memory_order_relaxed);
  {
    MutexLock lock(mutex_);
    if (reported_.size() >= kReportedMax || !reported_.insert(directory).second) return;
  }
  log_warn("a key cannot be shown as a file, and perhaps others beside it",
           {{"store", store_->describe()}, {"key", key}, {"reason", reason}});
}

Status BucketView::judge(const Status& listed) {
  // Whether it would list is not known then; and who waits for it has its own log.
  if (is_unanswered(listed) || listed == StatusCode::kCancelled) return listed;
  StatusCode before = StatusCode::kOk;
  {
    MutexLock lock(mutex_);
    before = std::exchange(refusal_, listed.code());
  }
  if (listed.ok() && before != StatusCode::kOk) {
    log_info("a bucket can be listed again", {{"path", path_}, {"store", store_->describe()}});
  } else if (!listed.ok() && before != listed.code()) {
    log_error("a bucket cannot be listed: mend the setting 'buckets', or what it names",
              {{"path", path_}, {"store", store_->describe()}, {"error", listed.to_string()}});
  }
  // A prefix without keys is an empty page, so it is the bucket itself that is not there.
  if (listed != StatusCode::kNotFound) return listed;
  return {StatusCode::kIoError, fmt::format("'{}' cannot be shown, since {} is not there: {}",
                                            path_, store_->describe(), listed.message())};
}

}  // namespace millrace
