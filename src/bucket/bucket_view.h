#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/recent.h"
#include "bucket/bucket_page.h"
#include "objectstore/object_store.h"

namespace millrace {

struct BucketViewOptions {
  // How old an answer may be while the store can be asked.
  Duration lifetime = std::chrono::seconds(5);
  std::uint32_t page_entries_max = 1000;
  // Of 1000 entries, so about 15 MiB.
  std::size_t pages_kept_max = 64;
  std::size_t names_kept_max = 16384;
  // Not on the view's executor of requests.
  RecentRefresh refresh = {};
};

// The keys of a store as directories and files, as they are now: a directory for each beginning of
// keys that ends in '/', a file for each object, but for those that cannot be shown
// (read_bucket_page). Answers are kept for the lifetime of the options, and longer while the store
// cannot be reached.
//
// Both questions fail as the store does, and with kIoError when it has no such bucket: that is no
// name that is not there. A store that begins to refuse its listings is logged once, until it lists
// again.
//
// A directory is written as its keys begin: "", "a/", "a/b/". All methods are safe from any thread,
// and block. What it is made with outlives it.
class BucketView {
 public:
  // `path` is where it is shown, for people: "/buckets/train". `requests` runs a request beside
  // another one: nothing that waits for a view may run on it.
  BucketView(std::string path, std::shared_ptr<ObjectStore> store, Clock& clock, Executor& requests,
             BucketViewOptions options = {});

  // The file or directory of this name; nothing when there is none, or it cannot be shown. Takes no
  // request when a fresh page tells, else two side by side.
  Result<std::optional<BucketEntry>> find(const RequestContext& context,
                                          const std::string& directory, std::string_view name);

  // A page that has what follows `after` ("" for the beginning) in the directory, and perhaps what
  // precedes it.
  Result<std::shared_ptr<const BucketPage>> page(const RequestContext& context,
                                                 const std::string& directory,
                                                 const std::string& after);

  // The store has shown that what is known of a name is no longer so.
  void forget(const std::string& directory, std::string_view name);

  // How many keys were met that cannot be shown, each time that they were met. The first of each
  // directory is logged.
  std::uint64_t hidden_keys() const { return hidden_keys_.load(std::memory_order_relaxed); }

 private:
  using Page = std::shared_ptr<const BucketPage>;
  using Age = Recent<Page>::Age;

  // What a kept page says about a name; nothing when none tells.
  std::optional<std::optional<BucketEntry>> known(const std::string& directory,
                                                  std::string_view name, Age age) const;
  // A kept page that has what follows `after`, or null.
  Page kept_page(const std::string& directory, const std::string& after, Age age) const;
  Result<std::optional<BucketEntry>> ask(const RequestContext& context,
                                         const std::string& directory, std::string_view name);
  void hide(const std::string& directory, const std::string& key, const std::string& reason);
  // What a listing of the store came to, as it is told to those who look.
  Status judge(const Status& listed);

  const std::string path_;
  const std::shared_ptr<ObjectStore> store_;
  Executor& requests_;
  const BucketViewOptions options_;
  std::atomic<std::uint64_t> hidden_keys_ = 0;

  Mutex mutex_;
  std::set<std::string> reported_ MR_GUARDED_BY(mutex_);
  StatusCode refusal_ MR_GUARDED_BY(mutex_) = StatusCode::kOk;  // The last that was logged.

  // Last: what they are asking uses the members above.
  Recent<Page> pages_;
  Recent<std::optional<BucketEntry>> names_;
};

}  // namespace millrace
