#pragma once

#include <optional>
#include <string>

#include "base/mutex.h"
#include "base/status.h"
#include "dataset/entry_sorter.h"
#include "dataset/publish_facts.h"
#include "dataset/publisher.h"
#include "dataset/source_tree.h"

namespace millrace {

// Sorts what a scan finds: take() and report() from any thread while it goes on, then seal(), then
// next() until there is none. The progress outlives it.
class PublishScan final : public SourceSink {
 public:
  // `scratch` is a directory for temporary files.
  PublishScan(const std::string& scratch, const PublishProgress& progress);

  Status take(std::span<SourceEntry> entries) override;
  Status report(SourceProblem problem) override;

  // Once the scan is over.
  Status seal();
  // The next entry in order; nothing after the last.
  Result<std::optional<SourceEntry>> next();
  const SourceProblems& problems() const { return problems_; }

 private:
  SourceProblems problems_;  // First: the sorter reports to it.
  Mutex mutex_;
  EntrySorter sorter_ MR_GUARDED_BY(mutex_);
  const PublishProgress& progress_;
};

}  // namespace millrace
