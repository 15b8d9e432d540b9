#include <algorithm>
#include <tuple>
#include <utility>

#include "dataset/source_listing.h"

namespace millrace {
namespace {

constexpr std::size_t kSplitLevelsMax = 16;
constexpr int kSplitPagesMax = 2;

}  // namespace

SourceSplit::SourceSplit(ObjectStore& store, std::string prefix, std::size_t ranges_max,
                         std::uint32_t page_entries_max)
    : store_(store),
      prefix_(std::move(prefix)),
      ranges_max_(ranges_max),
      page_entries_max_(page_entries_max) {}

Result<std::vector<SourceKeyRange>> SourceSplit::run(const RequestContext& context,
                                                     std::size_t threads) {
  SourceWork<Directory> work(ranges_max_);
  if (ranges_max_ > 1) work.add({.prefix = prefix_, .level = 0});
  MR_RETURN_IF_ERROR(work.run("split", threads, [&](const Directory& directory) {
    return look_into(context, work, directory);
  }));
  return ranges();
}

Status SourceSplit::look_into(const RequestContext& context, SourceWork<Directory>& work,
                              const Directory& directory) {
  ListRequest request{
      .prefix = directory.prefix, .fold_directories = true, .entries_max = page_entries_max_};
  for (int page_number = 0; page_number < kSplitPagesMax; ++page_number) {
    {
      MutexLock lock(mutex_);
      if (cuts_.size() >= ranges_max_) return {};
    }
    MR_ASSIGN_OR_RETURN(ListPage page, store_.list(context, request));
    MutexLock lock(mutex_);
    for (std::string& prefix : page.prefixes) {
      if (directory.level + 1 < kSplitLevelsMax) {
        Directory below{.prefix = prefix, .level = directory.level + 1};
        // More than enough directories wait already: this one only gives a cut.
        std::ignore = work.try_add(below);
      }
      cuts_.insert(std::move(prefix));
    }
    if (page.continuation.empty()) return {};
    request.continuation = std::move(page.continuation);
  }
  return {};
}

std::vector<SourceKeyRange> SourceSplit::ranges() const {
  MutexLock lock(mutex_);
  const std::vector<std::string> cuts(cuts_.begin(), cuts_.end());
  const std::size_t count = std::min(cuts.size() + 1, ranges_max_);
  std::vector<SourceKeyRange> ranges;
  std::string after;
  for (std::size_t n = 1; n < count; ++n) {
    // Evenly among the cuts: directories are taken to be about equally large.
    const std::string& cut = cuts[n * (cuts.size() + 1) / count - 1];
    ranges.push_back({.after = after, .through = cut});
    after = cut;
  }
  ranges.push_back({.after = after, .through = ""});
  return ranges;
}

}  // namespace millrace
