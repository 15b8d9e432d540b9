#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/request_context.h"
#include "base/status.h"
#include "loader/loader_job.h"
#include "loader/process_engine.h"
#include "service/sample_counting.h"
#include "service/unregistered_versions.h"
#include "vfs/datasets_tree.h"

namespace millrace {

// Opens the datasets of loaders on a gateway. One that somebody has open is shared: the ranks and
// workers of a job have one table of samples, and one listing of a bucket.
//
// Safe from any thread; what it is made with outlives it and all that it opened. Blocks.
class LoaderSources {
 public:
  struct Parts {
    DatasetsTree& datasets;
    ObjectStore& store;  // Of the registry.
    BlockCache& cache;
    UnregisteredVersions unregistered;
    // For tar files without an index; null: they are refused.
    std::shared_ptr<SampleCounting> counting;
    // The store at a URL or path that the user named.
    std::function<Result<std::shared_ptr<ObjectStore>>(const std::string& url)> store_at;
    // Only registered versions are given: whoever names a place is refused.
    bool require_version = false;
  };
  explicit LoaderSources(Parts parts) : parts_(std::move(parts)) {}

  // Failures name the dataset. Splits and shares do not matter here.
  Result<std::shared_ptr<ProcessEngine>> open(const RequestContext& context,
                                              const std::vector<SourceChoice>& choices) const;

 private:
  // A source that is open while somebody has it.
  struct SharedSource {
    std::weak_ptr<SampleFiles> files = {};
    std::weak_ptr<SampleSource> source = {};
    SourceFacts facts = {};
  };

  Result<OpenSource> open_one(const RequestContext& context, const SourceChoice& choice) const;
  Result<OpenSource> open_tree(const RequestContext& context, const SourceChoice& choice,
                               const std::shared_ptr<VersionTree>& tree) const;
  std::optional<OpenSource> find(const std::string& key) const MR_EXCLUDES(mutex_);
  std::optional<OpenSource> find_locked(const std::string& key) const MR_REQUIRES(mutex_);
  // What is shared under that key from now on: another one, where somebody was faster.
  OpenSource share(const std::string& key, OpenSource source) const MR_EXCLUDES(mutex_);

  const Parts parts_;
  mutable Mutex mutex_;
  mutable std::map<std::string, SharedSource> shared_ MR_GUARDED_BY(mutex_);
};

// Whether a dataset is named by where it lies, and not by the registry: a path or a URL.
bool names_a_place(const std::string& name);
// A name that does not depend on where this process is, since who opens it may be somewhere else: a
// relative path becomes a whole one.
std::string whole_place(const std::string& name);

}  // namespace millrace
