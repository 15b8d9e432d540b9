#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "dataset/manifest_writer.h"
#include "dataset/registry_facts.h"
#include "dataset/source_tree.h"

namespace millrace {

// What a scan met that cannot be part of a version: the number of it, and the first few. Safe from
// any thread.
class SourceProblems {
 public:
  static constexpr std::size_t kListedMax = 10;

  void note(SourceProblem problem) MR_EXCLUDES(mutex_);
  std::uint64_t count() const MR_EXCLUDES(mutex_);
  std::vector<SourceProblem> first() const MR_EXCLUDES(mutex_);
  // Success when there are none; else kInvalidArgument that lists them and says what to do.
  Status refuse(const std::string& source) const MR_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::uint64_t count_ MR_GUARDED_BY(mutex_) = 0;
  std::vector<SourceProblem> first_ MR_GUARDED_BY(mutex_);
};

// `said` is what whoever makes the version knows of it; all that its manifest tells is added.
VersionFacts new_version_facts(VersionFacts said, const ManifestSummary& summary,
                               VersionLayout layout);

}  // namespace millrace
