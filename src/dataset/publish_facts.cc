#include "dataset/publish_facts.h"

#include <utility>

#include <fmt/format.h>

namespace millrace {

void SourceProblems::note(SourceProblem problem) {
  MutexLock lock(mutex_);
  if (++count_ <= kListedMax) first_.push_back(std::move(problem));
}

std::uint64_t SourceProblems::count() const {
  MutexLock lock(mutex_);
  return count_;
}

std::vector<SourceProblem> SourceProblems::first() const {
  MutexLock lock(mutex_);
  return first_;
}

Status SourceProblems::refuse(const std::string& source) const {
  MutexLock lock(mutex_);
  if (count_ == 0) return {};
  // One line: messages are shown without line breaks.
  std::string message = fmt::format("{} of {} cannot be part of a version", count_, source);
  std::string_view separator = ": ";
  for (const SourceProblem& problem : first_) {
    message += fmt::format("{}'{}' {}", separator, problem.path, problem.reason);
    separator = ", ";
  }
  if (count_ > first_.size()) message += ", ...";
  message += "; remove them, or leave them out with --skip-problems";
  return {StatusCode::kInvalidArgument, std::move(message)};
}

VersionFacts new_version_facts(VersionFacts said, const ManifestSummary& summary,
                               VersionLayout layout) {
  said.content_digest = summary.content_digest;
  said.layout = std::move(layout);
  said.totals = {.files = summary.totals.files,
                 .directories = summary.totals.directories,
                 .symlinks = summary.totals.symlinks,
                 .bytes = summary.totals.logical_bytes};
  return said;
}

}  // namespace millrace
