#include "cache/segment_loader.h"

#include <algorithm>
#include <utility>

namespace millrace {
namespace {

// A file may take a little more than its records, for what the file system keeps about it.
constexpr std::uint64_t kSegmentSlackBytes = 64 * kKiB;

// A kill leaves records without an entry, and dead ones whose space is not freed.
std::vector<ByteRange> leaked_space(const FileFacts& facts, std::vector<SegmentPlace> places) {
  // A record is written before its entry, so they are nearly in order.
  std::ranges::sort(places, {}, &SegmentPlace::page);
  std::vector<ByteRange> gaps;
  std::uint64_t live_bytes = 0;
  std::uint64_t end = 0;
  for (const SegmentPlace& place : places) {
    if (place.offset() > end) gaps.push_back({end, place.offset() - end});
    end = std::max(end, place.offset() + place.bytes());
    live_bytes += place.bytes();
  }
  if (facts.size > end) gaps.push_back({end, facts.size - end});
  // Without live records the segment goes as a whole.
  if (places.empty() || facts.allocated_bytes <= live_bytes + kSegmentSlackBytes) return {};
  return gaps;
}

}  // namespace

SegmentLoader::SegmentLoader(Disk& disk, const SegmentFiles& files,
                             const std::vector<FoundSegment>& found)
    : disk_(disk), files_(files), found_(found) {
  if (found.size() <= kAheadMax) return;
  pool_ = std::make_unique<ThreadPool>(
      ThreadPoolOptions{.name = "start", .threads = kThreads, .queued_tasks_max = kAheadMax});
  while (started_ < kAheadMax)
    load_ahead();
}

void SegmentLoader::load_ahead() {
  if (started_ == found_.size()) return;
  pool_->resume([this, number = started_++] {
    LoadedSegment loaded = load(found_[number]);
    MutexLock lock(mutex_);
    loaded_.emplace(number, std::move(loaded));
    loaded_one_.notify_all();
  });
}

LoadedSegment SegmentLoader::next() {
  const std::size_t number = taken_++;
  if (!pool_) return load(found_[number]);
  LoadedSegment loaded;
  {
    MutexLock lock(mutex_);
    while (!loaded_.contains(number))
      loaded_one_.wait(mutex_);
    loaded = std::move(loaded_.extract(number).mapped());
  }
  load_ahead();
  return loaded;
}

LoadedSegment SegmentLoader::load(const FoundSegment& found) const {
  LoadedSegment loaded;
  loaded.segment = found.segment;
  const std::string data_path = files_.data_path(found.segment);
  FileFacts facts;
  if (found.has_data) {
    auto asked = disk_.stat(data_path);
    if (!asked) {
      loaded.status = asked.error();
      loaded.path = data_path;
      return loaded;
    }
    facts = *asked;
  }
  if (!found.has_index) {
    if (facts.size > 0) loaded.damage.push_back({data_path, "it has no index"});
    return loaded;
  }
  const std::string index_path = files_.index_path(found.segment);
  auto index = read_segment_index(
      disk_, index_path, found.segment, facts.size,
      [&loaded](const SegmentDamage& damage) { loaded.damage.push_back(damage); });
  if (!index) {
    loaded.status = index.error();
    loaded.path = index_path;
    return loaded;
  }
  loaded.index = *std::move(index);
  loaded.leaked = leaked_space(facts, loaded.index.places);
  return loaded;
}

}  // namespace millrace
